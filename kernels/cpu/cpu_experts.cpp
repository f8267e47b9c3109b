/// Mixture of experts on the CPU backend: routing by rows, products by expert.
#include <algorithm>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/dot_batch.hpp"
#include "kernels/numerics/expert_routing.hpp"

namespace leasehold {

LaunchStatus CpuBackend::expert_routing(const LaunchContext& context,
                                        const ExpertRoutingArgs& args) {
  expect_within_limits(limits_, context);
  const auto n_rows = static_cast<std::uint32_t>(context.rows.size());
  const std::uint32_t per_tile =
      items_per_tile(std::uint64_t{args.n_experts} * (kMacsPerExp + args.n_used * kMacsPerElement));
  return launcher_.run(context, label(context, LaunchSite::ExpertRouting),
                       tiles_for(n_rows, per_tile),
                       [&](const LaunchPermit&, std::uint32_t, std::uint32_t tile) {
                         const Span32 span = tile_span(tile, per_tile, n_rows);
                         for (std::uint32_t r = span.begin; r < span.end; ++r)
                           select_experts(args, r);
                       });
}

std::uint32_t CpuBackend::expert_of_tile(std::uint32_t n_experts, std::uint32_t tile) const {
  const auto last = first_tile_.begin() + n_experts + 1;
  return static_cast<std::uint32_t>(std::upper_bound(first_tile_.begin(), last, tile) -
                                    first_tile_.begin() - 1);
}

/// The tiles are those of one matmul per expert over the expert's items. An expert without items
/// has no tiles.
LaunchStatus CpuBackend::expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) {
  expect_within_limits(limits_, context, args);
  const std::uint32_t n_experts = args.n_experts;
  const std::uint32_t n_out = args.n_out();
  const ExpertItems batch = groups_.sort({args.chosen, args.n_items});
  if (args.weight.layout == MatrixLayout::RowGroups)
    return expert_matmul_int8(context, args, batch);
  const auto tiles_of = [&](std::uint32_t expert) {
    return dot_tiles(args.weight, n_out, batch.first[expert + 1] - batch.first[expert]);
  };
  first_tile_[0] = 0;
  for (std::uint32_t e = 0; e < n_experts; ++e) {
    const bool is_used = batch.first[e + 1] > batch.first[e];
    first_tile_[e + 1] = first_tile_[e] + (is_used ? tiles_of(e).count() : 0);
  }
  const auto run_tile = [&](const LaunchPermit& permit, std::uint32_t thread, std::uint32_t tile) {
    const std::uint32_t expert = expert_of_tile(n_experts, tile);
    const MatmulTiles tiles = tiles_of(expert);
    const std::uint32_t* items = batch.items.data() + batch.first[expert];
    const std::uint32_t own = tile - first_tile_[expert];
    const Span32 outputs = tiles.outputs(own);
    const Span32 inputs = tiles.batch(own);
    const std::uint32_t after = row_after(tiles, own, thread);
    for (std::uint32_t first = outputs.begin; first < outputs.end; first += tiles.outputs_at_once) {
      const std::uint32_t end = std::min(first + tiles.outputs_at_once, outputs.end);
      const std::uint32_t first_row = expert * n_out;
      DotTile dots = open_rows(permit, args.weight, {first_row + first, first_row + end},
                               first_row + (end < outputs.end ? end : after), thread);
      dot_batch(
          kernels_, dots, inputs, [&](std::uint32_t i) { return item_row(args, items[i]); },
          [&](std::uint32_t i, std::uint32_t o, std::uint32_t n, const float* products) {
            std::copy_n(products, n, args.out + std::size_t{items[i]} * n_out + first + o);
          });
    }
  };
  return launcher_.run(context, label(context, args.site), first_tile_[n_experts], run_tile);
}

/// A row may exceed a tile, so tiles ignore row boundaries.
LaunchStatus CpuBackend::weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) {
  expect_within_limits(limits_, context);
  const std::size_t n = context.rows.size() * args.width;
  expects(n <= UINT32_MAX, "a step's activations are counted in 32 bits");
  const auto add_terms = [&](std::uint32_t row, std::uint32_t column, std::uint32_t count) {
    for (std::uint32_t k = 0; k < args.n_terms; ++k) {
      const std::size_t term = std::size_t{row} * args.n_terms + k;
      const float weight = args.weights[term];
      kernels_.add_scaled(args.is_gate ? sigmoid(weight) : weight,
                          args.x + term * args.width + column,
                          args.out + std::size_t{row} * args.width + column, count);
    }
  };
  const std::uint32_t per_tile = items_per_tile(std::uint64_t{args.n_terms} * kMacsPerElement);
  const auto run_tile = [&](const LaunchPermit&, std::uint32_t, std::uint32_t tile) {
    const Span32 span = tile_span(tile, per_tile, static_cast<std::uint32_t>(n));
    for (std::uint32_t at = span.begin; at < span.end;) {
      const std::uint32_t column = at % args.width;
      const std::uint32_t count = std::min(args.width - column, span.end - at);
      add_terms(at / args.width, column, count);
      at += count;
    }
  };
  return launcher_.run(context, label(context, LaunchSite::ExpertSum), tiles_for(n, per_tile),
                       run_tile);
}

}  // namespace leasehold
