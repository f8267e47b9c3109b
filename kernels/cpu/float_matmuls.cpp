#include "kernels/cpu/float_matmuls.hpp"

#include <algorithm>

#include "kernels/cpu/dot_batch.hpp"

namespace leasehold {

FloatMatmuls::FloatMatmuls(CpuResources& cpu)
    : cpu_(cpu),
      stride_(thread_row_floats(cpu.limits)),
      widened_rows_(stride_ * kDotOutputs * cpu.launcher.threads()) {}

MatmulTiles FloatMatmuls::plan(const WeightMatrix& weight, std::uint32_t n_out,
                               std::uint32_t n_batch) const {
  const std::uint64_t tile_macs = cpu_.kernels.dot_tile_macs;
  // Widening a row takes n_in / kTileMacs of a unit, whatever the rate of dots is.
  const std::uint64_t macs_per_output =
      is_dot_type(weight.type)
          ? tile_macs * row_size_bytes(weight.type, weight.n_in) / kTileWeightBytes
          : tile_macs * weight.n_in / kTileMacs;
  // With few inputs, memory is the limit. Then fewer rows are multiplied at once, so that they and
  // the next rows, which arrive meanwhile, fit the L1 cache.
  const TensorType multiplied = is_dot_type(weight.type) ? weight.type : TensorType::F32;
  const bool fit =
      cpu_.kernels.dot_tile_outputs * row_size_bytes(multiplied, weight.n_in) <= kCachedRowBytes;
  const std::uint32_t at_once =
      fit && n_batch > kDotInputs ? cpu_.kernels.dot_tile_outputs : kDotOutputGroup;
  return MatmulTiles::plan(n_out, weight.n_in, n_batch, {tile_macs, macs_per_output, at_once});
}

/// Returns a tile of matrix rows (at most kDotOutputs) without inputs. Rows of types other than
/// F32, F16 and BF16 are widened to float. The tile requests the rows from `next` on from memory.
/// Valid while the permit is, and until the thread opens other rows.
DotTile FloatMatmuls::open_rows(const LaunchPermit& permit, const WeightMatrix& weight, Span32 rows,
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
    float* widened = widened_rows_.data() + (thread * kDotOutputs + o) * stride_;
    cpu_.kernels.dequantize_row(weight.type, tile.weights[o], widened, weight.n_in);
    tile.weights[o] = reinterpret_cast<const std::byte*>(widened);
  }
  return tile;
}

/// The first output that the thread computes after its tile; perhaps the same output, with other
/// inputs. Threads take tiles in turn, so a thread's next tile is as many tiles further as its node
/// has threads.
std::uint32_t FloatMatmuls::output_after(const RunningTile& tile) const {
  const std::uint32_t next = tile.index + cpu_.launcher.threads_on_node_of(tile.thread);
  return next < tile.tiles.count() ? tile.tiles.outputs(next).begin
                                   : tile.tiles.outputs(tile.index).end;
}

/// `row_of(i, outputs)` is input i, which is multiplied for these outputs. Calls
/// `store(i, output, n, products)` for n neighbouring outputs.
template <class RowOf, class Store>
void FloatMatmuls::multiply(const LaunchPermit& permit, const RunningTile& tile, RowOf&& row_of,
                            Store&& store) {
  const Span32 outputs = tile.tiles.outputs(tile.index);
  const Span32 batch = tile.tiles.batch(tile.index);
  const std::uint32_t at_once = tile.tiles.outputs_at_once;
  const std::uint32_t after = output_after(tile);
  for (std::uint32_t first = outputs.begin; first < outputs.end; first += at_once) {
    const Span32 set{first, std::min(first + at_once, outputs.end)};
    const std::uint32_t next = set.end < outputs.end ? set.end : after;
    DotTile dots =
        open_rows(permit, tile.weight, {tile.first_row + set.begin, tile.first_row + set.end},
                  tile.first_row + next, tile.thread);
    dot_batch(
        cpu_.kernels, dots, batch, [&](std::uint32_t i) { return row_of(i, set); },
        [&](std::uint32_t i, std::uint32_t o, std::uint32_t n, const float* products) {
          store(i, set.begin + o, n, products);
        });
  }
}

LaunchStatus FloatMatmuls::matmul(const LaunchContext& context, const MatmulArgs& args) {
  const std::uint32_t n_batch = selected_rows(context, args);
  if (n_batch == 0) return {context.gates->all()};
  const std::size_t n_out = args.weight.n_out;
  const MatmulTiles tiles = plan(args.weight, args.weight.n_out, n_batch);
  const auto run_tile = [&](const LaunchPermit& permit, std::uint32_t thread, std::uint32_t tile) {
    const float* bias = args.bias ? permit.open(args.bias) : nullptr;
    multiply(
        permit, {args.weight, 0, tiles, tile, thread},
        [&](std::uint32_t i, Span32 outputs) {
          // Without this request, later dots would wait for the cache lines of the results.
          __builtin_prefetch(args.out + i * n_out + outputs.begin, 1);
          __builtin_prefetch(args.out + i * n_out + outputs.end - 1, 1);
          return selected_row(args, i);
        },
        [&](std::uint32_t i, std::uint32_t o, std::uint32_t n, const float* products) {
          store_products<kDotOutputGroup>(args, args.out + i * n_out + o, products,
                                          bias != nullptr ? bias + o : nullptr, n);
        });
  };
  return cpu_.launcher.run(context, label(context, args.site), tiles.passes(), run_tile);
}

LaunchStatus FloatMatmuls::expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args,
                                         ExpertTiles& experts) {
  const std::uint32_t n_out = args.n_out();
  const auto tiles_of = [&](std::uint32_t n_items) { return plan(args.weight, n_out, n_items); };
  const std::uint32_t n_tiles =
      experts.begin(args, [&](std::uint32_t n_items) { return tiles_of(n_items).count(); });
  const auto run_tile = [&](const LaunchPermit& permit, std::uint32_t thread, std::uint32_t tile) {
    const ExpertTiles::Tile own = experts.at(tile);
    const MatmulTiles tiles = tiles_of(own.n_items());
    const float* bias =
        args.bias ? permit.open(args.bias) + std::size_t{own.expert} * n_out : nullptr;
    multiply(
        permit, {args.weight, own.expert * n_out, tiles, own.index, thread},
        [&](std::uint32_t i, Span32) { return item_row(args, own.items[i]); },
        [&](std::uint32_t i, std::uint32_t o, std::uint32_t n, const float* products) {
          float* out = args.out + std::size_t{own.items[i]} * args.stride() + o;
          std::copy_n(products, n, out);
          if (bias != nullptr)
            for (std::uint32_t k = 0; k < n; ++k) out[k] += bias[o + k];
        });
  };
  return cpu_.launcher.run(context, label(context, args.site), n_tiles, run_tile);
}

void FloatMatmuls::clear() {
  std::ranges::fill(widened_rows_, 0.0F);
}

}  // namespace leasehold
