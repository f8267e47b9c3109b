#include "kernels/cpu/cpu_backend.hpp"

#include <algorithm>
#include <system_error>

#include "common/machine/start_thread.hpp"
#include "kernels/numerics/expert_routing.hpp"
#include "kernels/numerics/scale_vector.hpp"

namespace leasehold {
namespace {

/// Stores one position of one head; the head's elements and scales begin at `head`.
void store_entry(const RowKernels& kernels, const KvLayer& layout, const float* values,
                 std::byte* head, std::uint32_t slot) {
  std::byte* to = head + layout.entry_offset_bytes(slot);
  if (layout.type != KvType::Q8_0)
    return kernels.store_kv(layout.type, values, to, layout.head_dim);
  kernels.round_kv(values, layout.head_dim, reinterpret_cast<std::int8_t*>(to),
                   reinterpret_cast<Half*>(head + layout.scales_offset_bytes(slot)));
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

LaunchStatus CpuBackend::embedding(const LaunchContext& context, const EmbeddingArgs& args) {
  const std::uint32_t width = args.table.n_in;
  return cpu_.each_row(context, label(context, LaunchSite::Embedding), width * kMacsPerElement,
                       [&](const LaunchPermit& permit, std::size_t r) {
                         const auto token = static_cast<std::uint32_t>(args.tokens[r]);
                         expects(token < args.table.n_out, "a token is an index of the vocabulary");
                         float* out = args.out + r * width;
                         if (args.table.layout == MatrixLayout::RowGroups)
                           dequantize_grouped(permit, args.table, token, out);
                         else
                           cpu_.kernels.dequantize_row(
                               args.table.type, matrix_row(permit, args.table, token), out, width);
                         if (args.scale != 1.0F) scale_vector({out, width}, args.scale);
                       });
}

LaunchStatus CpuBackend::rms_norm(const LaunchContext& context, const RmsNormArgs& args) {
  return cpu_.each_part(
      context, label(context, args.site), context.rows.size() * args.vectors_per_row,
      std::uint64_t{args.width} * kMacsPerElement, [&](const LaunchPermit& permit, Span32 vectors) {
        for (std::size_t i = vectors.begin; i < vectors.end; ++i)
          cpu_.kernels.rms_norm_row({.x = args.x + i * args.width,
                                     .weight = permit.open(args.weight) + weight_offset(args, i),
                                     .out = args.out + i * args.width,
                                     .width = args.width,
                                     .epsilon = args.epsilon,
                                     .scale = args.scale,
                                     .accumulate = args.accumulate,
                                     .out_scale = out_scale_of(permit, args),
                                     .is_centered = args.is_centered});
      });
}

/// Appends the keys and values of row r.
void CpuBackend::append(const LaunchPermit& permit, const LaunchContext& context,
                        const HeadsArgs& args, std::size_t r) const {
  const RowRef row = context.rows[r];
  const KvLayer& layout = args.layout;
  std::byte* block =
      permit.open(args.block_tables[row.sequence][row.position / KvLayout::kBlockTokens]);
  const std::uint32_t slot = row.position % KvLayout::kBlockTokens;
  for (std::uint32_t h = 0; h < layout.n_kv_heads; ++h) {
    const std::size_t from = (r * layout.n_kv_heads + h) * layout.head_dim;
    store_entry(cpu_.kernels, layout, args.k + from, block + layout.head_offset_bytes(0, h), slot);
    if (layout.is_latent()) continue;
    store_entry(cpu_.kernels, layout, args.v + from, block + layout.head_offset_bytes(1, h), slot);
  }
}

/// Normalises the values of row r, without a weight.
void CpuBackend::norm_values(const HeadsArgs& args, std::size_t r) const {
  const KvLayer& layout = args.layout;
  float* head = args.v + r * layout.n_kv_heads * layout.head_dim;
  for (std::uint32_t h = 0; h < layout.n_kv_heads; ++h, head += layout.head_dim)
    cpu_.kernels.rms_norm_row({head, nullptr, head, layout.head_dim, args.epsilon});
}

/// A unit runs all operators of its rows under the label of the append.
LaunchStatus CpuBackend::prepare_heads(const LaunchContext& context, const HeadsArgs& args) {
  const std::uint32_t head_dim = args.layout.head_dim;
  const std::uint32_t n_kv_heads = args.k != nullptr ? args.layout.n_kv_heads : 0;
  const auto prepare = [&](float* heads, std::uint32_t n, const float* norm,
                           std::uint32_t norm_width, std::size_t r) {
    for (float* head = heads + r * n * head_dim; n > 0; --n, head += head_dim) {
      if (norm != nullptr) cpu_.kernels.rms_norm_row({head, norm, head, norm_width, args.epsilon});
      cpu_.kernels.rope_head(head + args.rope_begin(), args.cos_sin + r * args.rope_dim,
                             args.rope_dim, args.style);
    }
  };
  const std::uint64_t elements = std::uint64_t{args.n_heads + 2 * n_kv_heads} * head_dim;
  return cpu_.each_row(
      context, label(context, LaunchSite::KvAppend, Touches::TenantMemory),
      elements * 2 * kMacsPerElement, [&](const LaunchPermit& permit, std::size_t r) {
        if (!permit.is_live(context.rows[r].sequence)) return;
        prepare(args.q, args.n_heads, open_or_null(permit, args.query_norm), head_dim, r);
        if (args.query_scales != nullptr)
          scale_vector({args.q + r * args.n_heads * head_dim, args.n_heads * head_dim},
                       args.query_scales[r]);
        if (n_kv_heads == 0) return;
        prepare(args.k, n_kv_heads, open_or_null(permit, args.key_norm), args.layout.value_dim(),
                r);
        if (args.norms_values) norm_values(args, r);
        append(permit, context, args, r);
      });
}

/// Rows that are contiguous are divided into tiles without regard to their boundaries.
LaunchStatus CpuBackend::swiglu(const LaunchContext& context, const SwiGluArgs& args) {
  if (args.up_stride > 0)
    return cpu_.each_row(context, label(context, LaunchSite::SwiGlu),
                         std::uint64_t{args.width} * kMacsPerExp,
                         [&](const LaunchPermit&, std::size_t r) {
                           cpu_.kernels.swiglu(args.activation, args.gate + r * args.width,
                                               args.up + r * args.up_stride, args.width);
                         });
  return cpu_.each_part(context, label(context, LaunchSite::SwiGlu),
                        context.rows.size() * args.width, kMacsPerExp,
                        [&](const LaunchPermit&, Span32 span) {
                          cpu_.kernels.swiglu(args.activation, args.gate + span.begin,
                                              args.up + span.begin, span.end - span.begin);
                        });
}

LaunchStatus CpuBackend::softcap(const LaunchContext& context, const SoftcapArgs& args) {
  return cpu_.each_part(context, label(context, LaunchSite::LmHead),
                        std::size_t{selected_rows(context, args)} * args.width, kMacsPerExp,
                        [&](const LaunchPermit&, Span32 span) {
                          cpu_.kernels.softcap(args.x + span.begin, span.end - span.begin,
                                               args.cap);
                        });
}

LaunchStatus CpuBackend::expert_routing(const LaunchContext& context,
                                        const ExpertRoutingArgs& args) {
  return cpu_.each_row(
      context, label(context, LaunchSite::ExpertRouting),
      std::uint64_t{args.n_experts} * (kMacsPerExp + args.n_used * kMacsPerElement),
      [&](const LaunchPermit& permit, std::size_t r) {
        select_experts(args, open_vectors(permit, args), r);
      });
}

/// A row may exceed a tile, so tiles ignore row boundaries.
LaunchStatus CpuBackend::weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) {
  const auto add_terms = [&](std::uint32_t row, std::uint32_t column, std::uint32_t count) {
    float* out = args.out + std::size_t{row} * args.width + column;
    if (!args.accumulate) std::fill_n(out, count, 0.0F);
    for (std::uint32_t k = 0; k < args.n_terms; ++k) {
      const std::size_t term = std::size_t{row} * args.n_terms + k;
      const float weight = args.weights[term];
      cpu_.kernels.add_scaled(args.applies_sigmoid ? sigmoid(weight) : weight,
                              args.x + term * args.width + column, out, count);
    }
  };
  return cpu_.each_part(
      context, label(context, LaunchSite::ExpertSum), context.rows.size() * args.width,
      std::uint64_t{args.n_terms} * kMacsPerElement, [&](const LaunchPermit&, Span32 span) {
        for (std::uint32_t at = span.begin; at < span.end;) {
          const std::uint32_t column = at % args.width;
          const std::uint32_t count = std::min(args.width - column, span.end - at);
          add_terms(at / args.width, column, count);
          at += count;
        }
      });
}

LaunchStatus CpuBackend::matmul(const LaunchContext& context, const MatmulArgs& args) {
  expect_within_limits(cpu_.limits, context);
  expects(args.weight.n_in <= cpu_.limits.max_width, "matrix rows are at most max_width long");
  if (args.weight.layout == MatrixLayout::RowGroups)
    return int8_matmuls_.project(context, {.matmuls = {&args, 1}});
  return float_matmuls_.matmul(context, args);
}

LaunchStatus CpuBackend::project(const LaunchContext& context, const ProjectionArgs& args) {
  if (!Int8Matmuls::can_project(args)) return Backend::project(context, args);
  LaunchStatus status = int8_matmuls_.project(context, args);
  if (!status.none_live()) status &= cap_products(context, args);
  return status;
}

LaunchStatus CpuBackend::feed_forward(const LaunchContext& context, const FeedForwardArgs& args) {
  if (!int8_matmuls_.can_fuse(context, args)) return Backend::feed_forward(context, args);
  LaunchStatus status = int8_matmuls_.gate_and_up(context, args);
  if (!status.none_live()) status &= matmul(context, args.down);
  return status;
}

LaunchStatus CpuBackend::expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) {
  expect_within_limits(cpu_.limits, context, args);
  return args.weight.layout == MatrixLayout::RowGroups
             ? int8_matmuls_.expert_matmul(context, args, experts_)
             : float_matmuls_.expert_matmul(context, args, experts_);
}

LaunchStatus CpuBackend::copy_in(const LaunchContext& context, const CopyInArgs& args) {
  return cpu_.launcher.run(context, label(context, args.site, touches_of(args)),
                           tiles_for(args.size_bytes, kCopyUnitBytes),
                           [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                             copy_in_unit(permit, context, args, tile);
                           });
}

LaunchStatus CpuBackend::copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) {
  return cpu_.launcher.run(context, label(context, LaunchSite::BlockCopy, Touches::TenantMemory),
                           copy_piece_count(args, kCopyUnitBytes),
                           [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                             copy_piece(permit, args, tile);
                           });
}

void CpuBackend::clear_workspace() {
  int8_matmuls_.clear();
  float_matmuls_.clear();
  attention_.clear();
}

}  // namespace leasehold
