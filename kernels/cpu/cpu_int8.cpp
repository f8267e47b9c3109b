// Matmuls in int8 arithmetic: one launch computes and rounds the rows, another multiplies groups
// with them.
#include <algorithm>
#include <array>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold {
namespace {

/// Most rows of the batch in a tile.
constexpr std::uint32_t kRowsAtOnce = 16;
/// Columns of a gated row that are rounded at once: whole blocks of any size.
constexpr std::uint32_t kGateColumns = 1024;

/// Cuts a matmul into tiles of groups and rows. Tiles of the same groups are neighbours, so that
/// memory supplies these once, then the cache does.
struct GroupTiles {
  std::uint32_t n_groups;
  std::uint32_t n_batch;
  std::uint32_t groups_per_tile;
  std::uint32_t batch_per_tile;

  /// Tiles of `n_groups` groups of the matrix.
  static GroupTiles plan(const WeightMatrix& weight, std::uint32_t n_groups, std::uint32_t n_batch,
                         std::uint64_t tile_macs) {
    const std::uint64_t row_macs = std::uint64_t{kGroupRows} * weight.n_in;
    const bool fits = row_macs * kRowsAtOnce <= tile_macs;
    const std::uint32_t batch = std::min(n_batch, fits ? kRowsAtOnce : kRowsAtOnce / 2);
    const std::uint64_t by_macs = tile_macs / (row_macs * batch);
    const std::uint64_t by_bytes = kTileWeightBytes / row_group_bytes(weight.type, weight.n_in);
    const std::uint64_t groups = std::max<std::uint64_t>(std::min(by_macs, by_bytes), 1);
    return {n_groups, n_batch, static_cast<std::uint32_t>(groups), batch};
  }
  std::uint32_t batch_tiles() const { return tiles_for(n_batch, batch_per_tile); }
  std::uint32_t count() const { return tiles_for(n_groups, groups_per_tile) * batch_tiles(); }
  Span32 groups(std::uint32_t tile) const {
    return tile_span(tile / batch_tiles(), groups_per_tile, n_groups);
  }
  Span32 batch(std::uint32_t tile) const {
    return tile_span(tile % batch_tiles(), batch_per_tile, n_batch);
  }
};

}  // namespace

/// The rows of x, in parts of `columns` that are computed and rounded together.
struct CpuBackend::RoundingPlan {
  std::uint32_t n_rows;
  std::uint32_t n_in;
  std::uint32_t block;
  std::uint32_t columns;
  std::uint64_t macs_per_element = kMacsPerElement;

  RoundingPlan(const WeightMatrix& weight, std::uint32_t rows)
      : n_rows(rows),
        n_in(weight.n_in),
        block(group_format(weight.type).elements),
        columns(weight.n_in) {}
  std::uint32_t parts_per_row() const { return tiles_for(n_in, columns); }
  std::uint32_t parts_per_tile() const { return items_per_tile(columns * macs_per_element); }
};

/// Rounds what `part_of(permit, row, columns)` finds or computes.
template <class PartOf>
LaunchStatus CpuBackend::round_rows(const LaunchContext& context, LaunchSite site,
                                    const RoundingPlan& plan, PartOf&& part_of) {
  used_rounded_ = std::max(used_rounded_, plan.n_rows);
  const std::uint32_t n_parts = plan.n_rows * plan.parts_per_row();
  const std::uint32_t per_tile = plan.parts_per_tile();
  const auto round = [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
    const Span32 span = tile_span(tile, per_tile, n_parts);
    for (std::uint32_t part = span.begin; part < span.end; ++part) {
      const std::uint32_t row = part / plan.parts_per_row();
      const Span32 columns = tile_span(part % plan.parts_per_row(), plan.columns, plan.n_in);
      const float* x = part_of(permit, row, columns);
      const RoundedRowBuffer to = rounded_.buffer(row);
      kernels_.round_row(x, columns.end - columns.begin, plan.block,
                         {to.q + columns.begin, to.scale + columns.begin / plan.block,
                          to.sums + columns.begin / kInt8Strip});
    }
  };
  return launcher_.run(context, label(context, site), tiles_for(n_parts, per_tile), round);
}

/// Computes and rounds the rows of x.
LaunchStatus CpuBackend::round_inputs(const LaunchContext& context, const ProjectionArgs& args,
                                      std::uint32_t n_batch) {
  const MatmulArgs& first = args.matmuls.front();
  const std::uint32_t n_in = first.weight.n_in;
  RoundingPlan plan(first.weight, n_batch);
  if (args.norm != nullptr) {
    plan.macs_per_element = 2 * kMacsPerElement;
    return round_rows(context, args.norm->site, plan,
                      [&](const LaunchPermit& permit, std::uint32_t i, Span32) {
                        const std::size_t at = selected_index(first, i) * std::size_t{n_in};
                        kernels_.rms_norm_row({.x = args.norm->x + at,
                                               .weight = permit.open(args.norm->weight),
                                               .out = args.norm->out + at,
                                               .width = n_in,
                                               .epsilon = args.norm->epsilon});
                        return selected_row(first, i);
                      });
  }
  if (args.swiglu != nullptr) {
    plan.macs_per_element = kMacsPerExp + kMacsPerElement;
    plan.columns = std::min(n_in, kGateColumns);
    return round_rows(context, LaunchSite::SwiGlu, plan,
                      [&](const LaunchPermit&, std::uint32_t i, Span32 columns) {
                        const std::size_t at =
                            selected_index(first, i) * std::size_t{n_in} + columns.begin;
                        kernels_.swiglu(args.swiglu->gate + at, args.swiglu->up + at,
                                        columns.end - columns.begin);
                        return selected_row(first, i) + columns.begin;
                      });
  }
  return round_rows(context, first.site, plan, [&](const LaunchPermit&, std::uint32_t i, Span32) {
    return selected_row(first, i);
  });
}

/// Matmuls that round x alike are two launches, with what precedes them in the first.
LaunchStatus CpuBackend::project(const LaunchContext& context, const ProjectionArgs& args) {
  const WeightMatrix& first = args.matmuls.front().weight;
  const auto rounds_alike = [&](const MatmulArgs& matmul_args) {
    const WeightMatrix& weight = matmul_args.weight;
    return weight.layout == MatrixLayout::RowGroups &&
           block_shape(weight.type).elements == block_shape(first.type).elements;
  };
  if (!std::ranges::all_of(args.matmuls, rounds_alike)) return Backend::project(context, args);
  return project_int8(context, args);
}

LaunchStatus CpuBackend::project_int8(const LaunchContext& context, const ProjectionArgs& args) {
  expect_within_limits(limits_, context, args);
  const std::uint32_t n_batch = selected_rows(context, args.matmuls.front());
  if (n_batch == 0) return {context.gates->all()};
  const LaunchStatus rounded = round_inputs(context, args, n_batch);
  if (rounded.none_live()) return rounded;
  return {rounded.live & multiply_int8(context, args.matmuls, n_batch).live};
}

/// All matmuls in one launch, under the first one's site.
LaunchStatus CpuBackend::multiply_int8(const LaunchContext& context,
                                       std::span<const MatmulArgs> matmuls, std::uint32_t n_batch) {
  std::array<GroupTiles, ProjectionArgs::kMaxMatmuls> plans{};
  std::uint32_t n_tiles = 0;
  for (std::size_t m = 0; m < matmuls.size(); ++m) {
    const WeightMatrix& weight = matmuls[m].weight;
    plans[m] = GroupTiles::plan(weight, row_groups(weight.n_out), n_batch, kernels_.int8_tile_macs);
    n_tiles += plans[m].count();
  }
  const auto multiply = [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
    std::size_t m = 0;
    for (; tile >= plans[m].count(); ++m) tile -= plans[m].count();
    multiply_tile(permit, matmuls[m], plans[m].groups(tile), plans[m].batch(tile));
  };
  return launcher_.run(context, label(context, matmuls.front().site), n_tiles, multiply);
}

void CpuBackend::multiply_tile(const LaunchPermit& permit, const MatmulArgs& args, Span32 groups,
                               Span32 batch) {
  const std::uint32_t n_rows = batch.end - batch.begin;
  std::array<RoundedRow, kRowsAtOnce> x{};
  for (std::uint32_t i = 0; i < n_rows; ++i) x[i] = rounded_.row(batch.begin + i);
  for (std::uint32_t g = groups.begin; g < groups.end; ++g) {
    std::array<float, kRowsAtOnce * kGroupRows> dots;
    kernels_.dot_group_int8(args.weight.type, matrix_group(permit, args.weight, g),
                            args.weight.n_in, x.data(), n_rows, dots.data());
    for (std::uint32_t i = 0; i < n_rows; ++i)
      store_group(args, permit, g, batch.begin + i, dots.data() + i * kGroupRows);
  }
}

/// As with floats, one matmul per expert over its own items.
LaunchStatus CpuBackend::expert_matmul_int8(const LaunchContext& context,
                                            const ExpertMatmulArgs& args,
                                            const ExpertItems& batch) {
  const WeightMatrix& weight = args.weight;
  const LaunchStatus rounded =
      round_rows(context, args.site, RoundingPlan(weight, expert_inputs(args)),
                 [&](const LaunchPermit&, std::uint32_t i, Span32) {
                   return args.x + std::size_t{i} * weight.n_in;
                 });
  if (rounded.none_live()) return rounded;

  const std::uint32_t n_groups = args.n_out() / kGroupRows;
  const auto tiles_of = [&](std::uint32_t expert) {
    return GroupTiles::plan(weight, n_groups, batch.first[expert + 1] - batch.first[expert],
                            kernels_.int8_tile_macs);
  };
  first_tile_[0] = 0;
  for (std::uint32_t e = 0; e < args.n_experts; ++e) {
    const bool is_used = batch.first[e + 1] > batch.first[e];
    first_tile_[e + 1] = first_tile_[e] + (is_used ? tiles_of(e).count() : 0);
  }
  const auto multiply = [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
    const std::uint32_t expert = expert_of_tile(args.n_experts, tile);
    const GroupTiles tiles = tiles_of(expert);
    const Span32 span = tiles.batch(tile - first_tile_[expert]);
    const std::uint32_t n_rows = span.end - span.begin;
    const std::uint32_t* items = batch.items.data() + batch.first[expert] + span.begin;
    std::array<RoundedRow, kRowsAtOnce> x{};
    for (std::uint32_t i = 0; i < n_rows; ++i) x[i] = rounded_.row(items[i] / args.items_per_x);
    const Span32 groups = tiles.groups(tile - first_tile_[expert]);
    for (std::uint32_t g = groups.begin; g < groups.end; ++g) {
      std::array<float, kRowsAtOnce * kGroupRows> dots;
      kernels_.dot_group_int8(weight.type, matrix_group(permit, weight, expert * n_groups + g),
                              weight.n_in, x.data(), n_rows, dots.data());
      for (std::uint32_t i = 0; i < n_rows; ++i)
        std::copy_n(dots.data() + i * kGroupRows, kGroupRows,
                    args.out + (std::size_t{items[i]} * n_groups + g) * kGroupRows);
    }
  };
  const LaunchStatus multiplied =
      launcher_.run(context, label(context, args.site), first_tile_[args.n_experts], multiply);
  return {rounded.live & multiplied.live};
}

}  // namespace leasehold
