#include "kernels/cpu/cpu_backend.hpp"

#include <cstring>
#include <system_error>

#include "common/machine/start_thread.hpp"
#include "kernels/cpu/dot_batch.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold {
namespace {

/// The number of partials of the largest step, limited by the scratch budget, but at least that of
/// one row.
std::size_t partials_per_wave(const BackendLimits& limits) {
  const std::size_t per_row = std::size_t{limits.n_heads} * partition_count(limits.max_context);
  const std::size_t affordable =
      limits.attention_scratch_bytes / (partial_floats(limits.head_dim) * sizeof(float));
  return std::max(per_row, std::min(per_row * limits.max_rows, affordable));
}

/// Stores one position of one head; the head's elements and scales begin at `head`.
void store_entry(const RowKernels& kernels, const KvLayout& layout, const float* values,
                 std::byte* head, std::uint32_t slot) {
  std::byte* to = head + layout.entry_offset_bytes(slot);
  if (layout.type != KvType::Q8_0)
    return kernels.store_kv(layout.type, values, to, layout.head_dim);
  kernels.round_kv(values, layout.head_dim, reinterpret_cast<std::int8_t*>(to),
                   reinterpret_cast<Half*>(head + layout.scales_offset_bytes(slot)));
}

/// Whole cache lines, so that the aligned scratch of two threads does not overlap.
std::size_t tile_scratch_floats(std::uint32_t head_dim) {
  constexpr std::size_t kLine = kCacheLineBytes / sizeof(float);
  const std::size_t floats = kMaxTileQueries * kPartitionPositions +
                             std::size_t{kWidenedPositions} * head_dim +
                             std::size_t{KvLayout::kBlockTokens} * head_dim / kKvScaleBlock;
  return (floats + kLine - 1) / kLine * kLine;
}

}  // namespace

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(const BackendLimits& limits,
                                                       std::vector<ThreadGate> gates, SimdPath path,
                                                       const PoolNodes& nodes) {
  const std::string path_name(leasehold::name(path));
  const std::string_view missing = missing_for(path);
  if (!missing.empty())
    return fail(Errc::BadRequest, "this CPU does not support " + path_name + ": it lacks " +
                                      std::string(missing) +
                                      "; choose another --simd path or omit the option");
  if (!passes_self_check(path))
    return fail(Errc::SystemError, "products by " + path_name +
                                       " differ from the plain ones on this CPU; choose another "
                                       "--simd path or omit the option");
  return create(limits, std::move(gates), row_kernels(path), "cpu-" + path_name, nodes);
}

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(const BackendLimits& limits,
                                                       std::vector<ThreadGate> gates,
                                                       const RowKernels& kernels, std::string name,
                                                       const PoolNodes& nodes) {
  const std::size_t threads = gates.size();
  try {
    return std::unique_ptr<CpuBackend>(
        new CpuBackend(limits, std::move(gates), kernels, std::move(name), nodes));
  } catch (const std::system_error& error) {
    return std::unexpected(
        thread_refused(std::to_string(threads) + " compute threads", error, "use fewer --threads"));
  }
}

CpuBackend::CpuBackend(const BackendLimits& limits, std::vector<ThreadGate> gates,
                       const RowKernels& kernels, std::string name, const PoolNodes& nodes)
    : limits_(limits),
      kernels_(kernels),
      name_(std::move(name)),
      launcher_(std::move(gates), nodes),
      // Each row starts on its own cache line, so threads do not share lines.
      widened_stride_((limits.max_width + 31) / 16 * 16),
      widened_rows_(widened_stride_ * kDotOutputs * launcher_.threads()),
      rounded_(max_matmul_inputs(limits), limits.max_width),
      own_rounded_(kOwnRows * launcher_.threads(), limits.max_width),
      products_left_(std::size_t{row_groups(limits.max_width)} *
                     4),  // at most 4 tiles of batch rows
      max_partials_(partials_per_wave(limits)),
      partials_(max_partials_ * partial_floats(limits.head_dim)),
      first_partial_(limits.max_rows + 1),
      partitions_left_(std::size_t{limits.max_rows} * limits.n_heads),
      tile_scratch_stride_(tile_scratch_floats(limits.head_dim)),
      tile_scratch_(tile_scratch_stride_ * (1 + launcher_.threads())),
      first_tile_(limits.n_experts + 1),
      groups_(limits.n_experts, max_matmul_inputs(limits)) {
  attention_tiles_.reserve(max_partials_);
}

/// Tiles of whole rows: calls `row(permit, r)` for each row of the step.
template <class Row>
LaunchStatus CpuBackend::each_row(const LaunchContext& context, UnitLabel label,
                                  std::uint64_t macs_per_row, Row&& row) {
  expect_within_limits(limits_, context);
  const auto n_rows = static_cast<std::uint32_t>(context.rows.size());
  const std::uint32_t per_tile = items_per_tile(macs_per_row);
  return launcher_.run(context, label, tiles_for(n_rows, per_tile),
                       [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                         const Span32 span = tile_span(tile, per_tile, n_rows);
                         for (std::uint32_t r = span.begin; r < span.end; ++r) row(permit, r);
                       });
}

LaunchStatus CpuBackend::embedding(const LaunchContext& context, const EmbeddingArgs& args) {
  const std::uint32_t width = args.table.n_in;
  return each_row(context, label(context, LaunchSite::Embedding), width * kMacsPerElement,
                  [&](const LaunchPermit& permit, std::size_t r) {
                    const auto token = static_cast<std::uint32_t>(args.tokens[r]);
                    expects(token < args.table.n_out, "a token is an index of the vocabulary");
                    float* out = args.out + r * width;
                    if (args.table.layout == MatrixLayout::RowGroups)
                      return dequantize_grouped(permit, args.table, token, out);
                    kernels_.dequantize_row(args.table.type, matrix_row(permit, args.table, token),
                                            out, width);
                  });
}

LaunchStatus CpuBackend::rms_norm(const LaunchContext& context, const RmsNormArgs& args) {
  const auto norm_vector = [&](const LaunchPermit& permit, std::size_t vector) {
    kernels_.rms_norm_row({.x = args.x + vector * args.width,
                           .weight = permit.open(args.weight),
                           .out = args.out + vector * args.width,
                           .width = args.width,
                           .epsilon = args.epsilon});
  };
  return each_row(context, label(context, args.site),
                  std::uint64_t{args.n_vectors} * args.width * kMacsPerElement,
                  [&](const LaunchPermit& permit, std::size_t r) {
                    for (std::uint32_t v = 0; v < args.n_vectors; ++v)
                      norm_vector(permit, r * args.n_vectors + v);
                  });
}

MatmulTiles CpuBackend::dot_tiles(const WeightMatrix& weight, std::uint32_t n_out,
                                  std::uint32_t n_batch) const {
  const std::uint64_t tile_macs = kernels_.dot_tile_macs;
  // Widening a row takes n_in / kTileMacs of a unit, whatever the rate of dots is.
  const std::uint64_t macs_per_output =
      is_dot_type(weight.type)
          ? tile_macs * row_size_bytes(weight.type, weight.n_in) / kTileWeightBytes
          : tile_macs * weight.n_in / kTileMacs;
  // With few inputs, memory is the limit. Then fewer rows are multiplied at once, so that they and
  // the next rows, which arrive meanwhile, fit the first cache.
  const TensorType multiplied = is_dot_type(weight.type) ? weight.type : TensorType::F32;
  const bool fit =
      kernels_.dot_tile_outputs * row_size_bytes(multiplied, weight.n_in) <= kCachedRowBytes;
  const std::uint32_t at_once =
      fit && n_batch > kDotInputs ? kernels_.dot_tile_outputs : kDotOutputGroup;
  return MatmulTiles::plan(n_out, weight.n_in, n_batch, {tile_macs, macs_per_output, at_once});
}

DotTile CpuBackend::open_rows(const LaunchPermit& permit, const WeightMatrix& weight, Span32 rows,
                              std::uint32_t next, std::uint32_t thread) {
  DotTile tile{.type = weight.type, .n_outputs = rows.end - rows.begin, .n = weight.n_in};
  for (std::uint32_t o = 0; o < tile.n_outputs; ++o)
    tile.weights[o] = matrix_row(permit, weight, rows.begin + o);
  if (is_dot_type(weight.type)) {
    tile.next = matrix_row(permit, weight, next);
    if (next != rows.begin)
      tile.next_bytes = tile.n_outputs * row_size_bytes(weight.type, weight.n_in);
    return tile;
  }
  tile.type = TensorType::F32;
  for (std::uint32_t o = 0; o < tile.n_outputs; ++o) {
    float* widened = widened_rows_.data() + (thread * kDotOutputs + o) * widened_stride_;
    kernels_.dequantize_row(weight.type, tile.weights[o], widened, weight.n_in);
    tile.weights[o] = reinterpret_cast<const std::byte*>(widened);
  }
  return tile;
}

/// The first row that a thread multiplies after a tile; perhaps the same row, with other inputs.
/// Threads take tiles in turn, so a thread's next tile is as many tiles further as its node has
/// threads.
std::uint32_t CpuBackend::row_after(const MatmulTiles& tiles, std::uint32_t tile,
                                    std::uint32_t thread) const {
  const std::uint32_t next = tile + launcher_.threads_on_node_of(thread);
  return next < tiles.count() ? tiles.outputs(next).begin : tiles.outputs(tile).end;
}

LaunchStatus CpuBackend::matmul(const LaunchContext& context, const MatmulArgs& args) {
  expect_within_limits(limits_, context);
  expects(args.weight.n_in <= limits_.max_width, "matrix rows are at most max_width long");
  if (args.weight.layout == MatrixLayout::RowGroups)
    return project_int8(context, {.matmuls = {&args, 1}});
  const std::uint32_t n_batch = selected_rows(context, args);
  if (n_batch == 0) return {context.gates->all()};
  const MatmulTiles tiles = dot_tiles(args.weight, args.weight.n_out, n_batch);
  const auto run_tile = [&](const LaunchPermit& permit, std::uint32_t thread, std::uint32_t tile) {
    const Span32 outputs = tiles.outputs(tile);
    const Span32 batch = tiles.batch(tile);
    const std::uint32_t after = row_after(tiles, tile, thread);
    const float* bias = args.bias ? permit.open(args.bias) : nullptr;
    for (std::uint32_t first = outputs.begin; first < outputs.end; first += tiles.outputs_at_once) {
      const Span32 rows{first, std::min(first + tiles.outputs_at_once, outputs.end)};
      DotTile dots =
          open_rows(permit, args.weight, rows, rows.end < outputs.end ? rows.end : after, thread);
      const auto out_of = [&](std::uint32_t i) {
        return args.out + std::size_t{i} * args.weight.n_out + first;
      };
      const auto row_of = [&](std::uint32_t i) {
        __builtin_prefetch(out_of(i), 1);  // otherwise later dots would wait for it
        __builtin_prefetch(out_of(i) + (rows.end - first - 1), 1);
        return selected_row(args, i);
      };
      dot_batch(kernels_, dots, batch, row_of,
                [&](std::uint32_t i, std::uint32_t o, std::uint32_t n, const float* products) {
                  store_products<kDotOutputGroup>(args, out_of(i) + o, products,
                                                  bias != nullptr ? bias + first + o : nullptr, n);
                });
    }
  };
  return launcher_.run(context, label(context, args.site), tiles.passes(), run_tile);
}

LaunchStatus CpuBackend::rope(const LaunchContext& context, const RopeArgs& args) {
  const std::size_t row_floats = std::size_t{args.n_heads} * args.head_dim;
  return each_row(context, label(context, args.site), row_floats * kMacsPerElement,
                  [&](const LaunchPermit&, std::size_t r) {
                    const float* cos_sin = args.cos_sin + r * args.rope_dim;
                    for (std::uint32_t h = 0; h < args.n_heads; ++h)
                      kernels_.rope_head(args.x + r * row_floats + h * args.head_dim, cos_sin,
                                         args.rope_dim, args.style);
                  });
}

/// Appends the keys and values of row r, unless its sequence is dead.
void CpuBackend::append_row(const LaunchPermit& permit, const LaunchContext& context,
                            const KvAppendArgs& args, std::size_t r) {
  const RowRef row = context.rows[r];
  if (!permit.is_live(row.sequence)) return;
  const KvLayout& layout = args.layout;
  const std::size_t row_floats = std::size_t{layout.n_kv_heads} * layout.head_dim;
  std::byte* block =
      permit.open(args.block_tables[row.sequence][row.position / KvLayout::kBlockTokens]);
  const std::uint32_t slot = row.position % KvLayout::kBlockTokens;
  for (std::uint32_t h = 0; h < layout.n_kv_heads; ++h) {
    const std::size_t from = r * row_floats + std::size_t{h} * layout.head_dim;
    store_entry(kernels_, layout, args.k + from,
                block + layout.head_offset_bytes(context.layer, 0, h), slot);
    store_entry(kernels_, layout, args.v + from,
                block + layout.head_offset_bytes(context.layer, 1, h), slot);
  }
}

LaunchStatus CpuBackend::kv_append(const LaunchContext& context, const KvAppendArgs& args) {
  const std::uint64_t elements = std::uint64_t{2} * args.layout.n_kv_heads * args.layout.head_dim;
  return each_row(context, label(context, LaunchSite::KvAppend, Touches::TenantMemory),
                  elements * kMacsPerElement, [&](const LaunchPermit& permit, std::size_t r) {
                    append_row(permit, context, args, r);
                  });
}

/// A unit runs all operators of its rows under the label of the append.
LaunchStatus CpuBackend::prepare_heads(const LaunchContext& context, const HeadsArgs& args) {
  const std::uint32_t head_dim = args.layout.head_dim;
  const std::uint32_t n_kv_heads = args.layout.n_kv_heads;
  const KvAppendArgs append{
      .layout = args.layout, .k = args.k, .v = args.v, .block_tables = args.block_tables};
  const auto prepare = [&](float* heads, std::uint32_t n, const float* norm, std::size_t r) {
    for (float* head = heads + r * n * head_dim; n > 0; --n, head += head_dim) {
      if (norm != nullptr) kernels_.rms_norm_row({head, norm, head, head_dim, args.epsilon});
      kernels_.rope_head(head, args.cos_sin + r * args.rope_dim, args.rope_dim, args.style);
    }
  };
  const std::uint64_t elements = std::uint64_t{args.n_heads + 2 * n_kv_heads} * head_dim;
  return each_row(
      context, label(context, LaunchSite::KvAppend, Touches::TenantMemory),
      elements * 2 * kMacsPerElement, [&](const LaunchPermit& permit, std::size_t r) {
        if (!permit.is_live(context.rows[r].sequence)) return;
        prepare(args.q, args.n_heads, args.query_norm ? permit.open(args.query_norm) : nullptr, r);
        prepare(args.k, n_kv_heads, args.key_norm ? permit.open(args.key_norm) : nullptr, r);
        append_row(permit, context, append, r);
      });
}

LaunchStatus CpuBackend::swiglu(const LaunchContext& context, const SwiGluArgs& args) {
  expect_within_limits(limits_, context);
  const std::size_t n = context.rows.size() * args.width;  // rows are contiguous
  expects(n <= UINT32_MAX, "a step's activations are counted in 32 bits");
  const std::uint32_t per_tile = items_per_tile(kMacsPerExp);
  return launcher_.run(
      context, label(context, LaunchSite::SwiGlu), tiles_for(n, per_tile),
      [&](const LaunchPermit&, std::uint32_t, std::uint32_t tile) {
        const Span32 span = tile_span(tile, per_tile, static_cast<std::uint32_t>(n));
        kernels_.swiglu(args.gate + span.begin, args.up + span.begin, span.end - span.begin);
      });
}

LaunchStatus CpuBackend::copy_in(const LaunchContext& context, const CopyInArgs& args) {
  const std::uint32_t tiles = tiles_for(args.size_bytes, kCopyUnitBytes);
  return launcher_.run(context, label(context, args.site, touches_of(args)), tiles,
                       [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                         if (!may_copy(context, args, permit)) return;
                         const std::size_t at = std::size_t{tile} * kCopyUnitBytes;
                         std::memcpy(permit.open(args.to) + at, args.from + at,
                                     std::min(kCopyUnitBytes, args.size_bytes - at));
                       });
}

LaunchStatus CpuBackend::copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) {
  return launcher_.run(context, label(context, LaunchSite::BlockCopy, Touches::TenantMemory),
                       copy_piece_count(args, kCopyUnitBytes),
                       [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                         copy_piece(permit, args, tile, kCopyUnitBytes);
                       });
}

void CpuBackend::clear_workspace() {
  rounded_.clear(std::exchange(used_rounded_, 0));
  own_rounded_.clear(std::size_t{kOwnRows} * launcher_.threads());
  std::ranges::fill(widened_rows_, 0.0F);
  const std::size_t used = std::exchange(used_partials_, 0);
  std::fill_n(partials_.begin(), used * partial_floats(limits_.head_dim), 0.0F);
  std::fill(tile_scratch_.begin(), tile_scratch_.end(), 0.0F);
}

}  // namespace leasehold
