#include "kernels/cpu/int8_matmuls.hpp"

#include <algorithm>
#include <array>

namespace leasehold {
namespace {

/// Prefetches the cache lines to which the products of these groups and rows are stored.
void request_products(const MatmulArgs& args, Span32 groups, Span32 batch) {
  for (std::uint32_t i = batch.begin; i < batch.end; ++i)
    for (std::uint32_t g = groups.begin; g < groups.end; ++g)
      __builtin_prefetch(args.out + std::size_t{i} * args.weight.n_out + g * kGroupRows, 1);
}

/// Adds the bias of a group, if any, to its products with some rows. `args` have a weight and a
/// bias.
template <class Args>
void add_bias(const Args& args, const LaunchPermit& permit, std::uint32_t group,
              std::uint32_t n_rows, GroupDots& dots) {
  if (!args.bias) return;
  const std::uint32_t first = group * kGroupRows;
  const std::uint32_t n = std::min(args.weight.n_out - first, kGroupRows);
  const float* bias = permit.open(args.bias) + first;
  for (std::uint32_t i = 0; i < n_rows; ++i)
    for (std::uint32_t o = 0; o < n; ++o) dots[i][o] += bias[o];
}

/// The rounded rows of a tile.
struct TileInputs {
  std::uint32_t n_rows;
  std::array<RoundedRow, kInt8TileRows> x;  // the first n_rows are used

  /// `row(i)` is the input of row i of the batch.
  template <class Row>
  TileInputs(Span32 batch, Row&& row) : n_rows(batch.end - batch.begin) {
    for (std::uint32_t i = 0; i < n_rows; ++i) x[i] = row(batch.begin + i);
  }
  TileInputs(Span32 batch, InputRows rows)
      : TileInputs(batch, [&](std::uint32_t i) { return rows.row(i); }) {}
  std::span<const RoundedRow> all() const { return std::span(x).first(n_rows); }
};

}  // namespace

Int8Matmuls::Int8Matmuls(CpuResources& cpu)
    : cpu_(cpu),
      rounding_(cpu),
      // at most 4 tiles of batch rows
      products_left_(std::size_t{row_groups(cpu.limits.max_width)} * 4) {}

const Int8Units& Int8Matmuls::units(std::uint32_t n_batch) const {
  const RowKernels& kernels = cpu_.kernels;
  return n_batch < kernels.int8_few_rows ? kernels.int8_units_few_rows : kernels.int8_units;
}

GroupTiles Int8Matmuls::plan(const WeightMatrix& weight, std::uint32_t n_groups,
                             std::uint32_t n_batch, std::uint32_t matrices) const {
  return GroupTiles::plan(
      weight, n_groups, n_batch,
      {.units = units(n_batch), .matrices = matrices, .threads = cpu_.launcher.threads()});
}

bool Int8Matmuls::can_project(const ProjectionArgs& args) {
  const TensorType first = args.matmuls.front().weight.type;
  return std::ranges::all_of(args.matmuls, [&](const MatmulArgs& matmul) {
    return matmul.weight.layout == MatrixLayout::RowGroups &&
           block_shape(matmul.weight.type).elements == block_shape(first).elements;
  });
}

LaunchStatus Int8Matmuls::project(const LaunchContext& context, const ProjectionArgs& args) {
  expect_within_limits(cpu_.limits, context, args);
  const std::uint32_t n_batch = selected_rows(context, args.matmuls.front());
  if (n_batch == 0) return {context.gates->all()};
  std::array<GroupTiles, ProjectionArgs::kMaxMatmuls> plans{};
  static_assert(ProjectionArgs::kMaxMatmuls <= TilePasses::kMaxAdded);
  TilePasses tiles;  // one pass per matrix
  for (std::size_t m = 0; m < args.matmuls.size(); ++m) {
    const WeightMatrix& weight = args.matmuls[m].weight;
    plans[m] = plan(weight, row_groups(weight.n_out), n_batch);
    tiles.add(plans[m].count());
  }
  return rounding_.run(context, RoundingPlan(args, n_batch), tiles,
                       [&](const LaunchPermit& permit, InputRows rows, std::uint32_t tile) {
                         std::size_t m = 0;
                         for (; tile >= plans[m].count(); ++m) tile -= plans[m].count();
                         multiply(permit, args.matmuls[m], plans[m].groups(tile),
                                  plans[m].batch(tile), rows);
                       });
}

/// Computes the products of up to kInt8TileGroups groups with rows of x.
void Int8Matmuls::multiply_groups(const LaunchPermit& permit, const WeightMatrix& weight,
                                  Span32 groups, std::span<const RoundedRow> x,
                                  GroupDots* dots) const {
  cpu_.kernels.dot_groups_int8({.type = weight.type,
                                .groups = matrix_group(permit, weight, groups.begin),
                                .n_groups = groups.end - groups.begin,
                                .n_in = weight.n_in,
                                .x = x.data(),
                                .n_rows = static_cast<std::uint32_t>(x.size()),
                                .out = dots});
}

/// Stores the products of a group. The last group of a matrix may have fewer outputs than rows.
void Int8Matmuls::store(const MatmulArgs& args, const LaunchPermit& permit, std::uint32_t group,
                        Span32 batch, const GroupDots& dots) const {
  const std::size_t n_out = args.weight.n_out;
  const std::size_t first = std::size_t{group} * kGroupRows;
  if (first + kGroupRows > n_out) {
    for (std::uint32_t i = batch.begin; i < batch.end; ++i)
      store_group(args, permit, group, i, dots[i - batch.begin]);
    return;
  }
  cpu_.kernels.store_dots({.dots = &dots,
                           .n_rows = batch.end - batch.begin,
                           .bias = args.bias ? permit.open(args.bias) + first : nullptr,
                           .accumulate = args.accumulate,
                           .out = args.out + batch.begin * n_out + first,
                           .stride = n_out});
}

void Int8Matmuls::multiply(const LaunchPermit& permit, const MatmulArgs& args, GroupSpan groups,
                           Span32 batch, InputRows rows) const {
  const TileInputs x(batch, rows);
  groups.each_set([&](Span32 set) {
    alignas(64) GroupDots dots[kInt8TileGroups];
    request_products(args, set, batch);
    multiply_groups(permit, args.weight, set, x.all(), dots);
    for (std::uint32_t g = set.begin; g < set.end; ++g)
      store(args, permit, g, batch, dots[g - set.begin]);
  });
}

bool Int8Matmuls::can_fuse(const LaunchContext& context, const FeedForwardArgs& args) const {
  const auto is_plain = [](const MatmulArgs& matmul) {
    return matmul.weight.layout == MatrixLayout::RowGroups && !matmul.accumulate;
  };
  const std::uint32_t n_batch = selected_rows(context, args.gate);
  if (!is_plain(args.gate) || !is_plain(args.up) || args.gate.weight.type != args.up.weight.type ||
      n_batch == 0)
    return false;
  const Int8Units& unit = units(n_batch);
  return n_batch < kInt8TileRows ||
         std::uint64_t{2 * unit.min_rows * kGroupRows} * args.gate.weight.n_in <= unit.tile_macs;
}

/// Runs gate and up in one launch. With few rows all tiles of the gate come first, because memory
/// is faster with one matrix at a time. The unit that completes a pair of tiles applies SwiGLU to
/// it.
LaunchStatus Int8Matmuls::gate_and_up(const LaunchContext& context, const FeedForwardArgs& args) {
  const MatmulArgs wide[] = {args.gate, args.up};
  const ProjectionArgs projection{.norm = args.norm, .matmuls = wide};
  expect_within_limits(cpu_.limits, context, projection);
  expects(args.gate.weight.n_out == args.up.weight.n_out, "gate and up are equally wide");
  const std::uint32_t n_batch = selected_rows(context, args.gate);
  const RoundingPlan rounding(projection, n_batch);
  const bool gates_per_tile = n_batch >= kInt8TileRows;
  const GroupTiles tiles =
      plan(args.gate.weight, row_groups(args.gate.weight.n_out), n_batch, gates_per_tile ? 2 : 1);
  const std::uint32_t n_tiles = tiles.count();
  if (gates_per_tile)
    return rounding_.run(context, rounding, n_tiles,
                         [&](const LaunchPermit& permit, InputRows rows, std::uint32_t tile) {
                           multiply_gated(permit, args, tiles.groups(tile), tiles.batch(tile),
                                          rows);
                         });
  expects(n_tiles <= products_left_.size(), "a feed-forward fits the backend's limits");
  // Relaxed: the launch publishes the counts.
  for (std::uint32_t t = 0; t < n_tiles; ++t) products_left_[t].store(2, std::memory_order_relaxed);
  TilePasses passes;
  passes.add(n_tiles, 2);
  return rounding_.run(context, rounding, passes,
                       [&](const LaunchPermit& permit, InputRows rows, std::uint32_t index) {
                         const std::uint32_t tile = index % n_tiles;
                         multiply(permit, index < n_tiles ? args.gate : args.up, tiles.groups(tile),
                                  tiles.batch(tile), rows);
                         // The first decrement releases its products, and the second acquires them.
                         if (products_left_[tile].fetch_sub(1, std::memory_order_acq_rel) == 1)
                           gate_block(args, tiles.groups(tile), tiles.batch(tile));
                       });
}

/// Computes the gated products of a tile. Products stay in the L1 cache; those of up are not
/// stored.
void Int8Matmuls::multiply_gated(const LaunchPermit& permit, const FeedForwardArgs& args,
                                 GroupSpan groups, Span32 batch, InputRows rows) const {
  const TileInputs x(batch, rows);
  MatmulArgs gated = args.gate;
  gated.bias = {};  // added before SwiGLU
  groups.each_set([&](Span32 set) {
    alignas(64) GroupDots gate[kInt8TileGroups];
    alignas(64) GroupDots up[kInt8TileGroups];
    request_products(args.gate, set, batch);
    multiply_groups(permit, args.gate.weight, set, x.all(), gate);
    multiply_groups(permit, args.up.weight, set, x.all(), up);
    for (std::uint32_t g = set.begin; g < set.end; ++g) {
      GroupDots& dots = gate[g - set.begin];
      add_bias(args.gate, permit, g, x.n_rows, dots);
      add_bias(args.up, permit, g, x.n_rows, up[g - set.begin]);
      cpu_.kernels.swiglu(args.activation, dots[0], up[g - set.begin][0],
                          std::size_t{x.n_rows} * kGroupRows);
      store(gated, permit, g, batch, dots);
    }
  });
}

/// Gates the products of some rows and the columns of some groups.
void Int8Matmuls::gate_block(const FeedForwardArgs& args, GroupSpan groups, Span32 batch) const {
  const std::size_t n_out = args.gate.weight.n_out;
  const std::size_t first = std::size_t{groups.begin} * kGroupRows;
  const std::size_t n = std::min(std::size_t{groups.end} * kGroupRows, n_out) - first;
  for (std::uint32_t i = batch.begin; i < batch.end; ++i)
    cpu_.kernels.swiglu(args.activation, args.gate.out + i * n_out + first,
                        args.up.out + i * n_out + first, n);
}

LaunchStatus Int8Matmuls::expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args,
                                        ExpertTiles& experts) {
  const WeightMatrix& weight = args.weight;
  const std::uint32_t n_groups = args.n_out() / kGroupRows;
  const auto tiles_of = [&](std::uint32_t n_items) { return plan(weight, n_groups, n_items); };
  const std::uint32_t n_tiles =
      experts.begin(args, [&](std::uint32_t n_items) { return tiles_of(n_items).count(); });
  const auto run_tile = [&](const LaunchPermit& permit, InputRows rows, std::uint32_t index) {
    const ExpertTiles::Tile tile = experts.at(index);
    const GroupTiles tiles = tiles_of(tile.n_items());
    const Span32 batch = tiles.batch(tile.index);
    const TileInputs x(batch,
                       [&](std::uint32_t i) { return rows.row(tile.items[i] / args.items_per_x); });
    const std::uint32_t first = tile.expert * n_groups;
    tiles.groups(tile.index).each_set([&](Span32 set) {
      alignas(64) GroupDots dots[kInt8TileGroups];
      multiply_groups(permit, weight, {first + set.begin, first + set.end}, x.all(), dots);
      for (std::uint32_t g = set.begin; g < set.end; ++g)
        add_bias(args, permit, first + g, x.n_rows, dots[g - set.begin]);
      for (std::uint32_t i = 0; i < x.n_rows; ++i)
        for (std::uint32_t g = set.begin; g < set.end; ++g)
          std::copy_n(
              dots[g - set.begin][i], kGroupRows,
              args.out + std::size_t{tile.items[batch.begin + i]} * args.stride() + g * kGroupRows);
    });
  };
  const MatmulArgs inputs{.site = args.site, .weight = weight, .x = args.x, .out = args.out};
  const ProjectionArgs projection{.matmuls = {&inputs, 1}};
  return rounding_.run(context, RoundingPlan(projection, expert_inputs(args)), n_tiles, run_tile);
}

}  // namespace leasehold
