// Matmuls in int8 arithmetic. Rows are computed and rounded in a prologue or in a separate launch,
// then groups are multiplied with them.
#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "kernels/cpu/cpu_backend.hpp"

namespace leasehold {
namespace {

/// Columns of a gated row that are rounded at once: a whole number of blocks of 32 or 256.
constexpr std::uint32_t kGateColumns = 1024;
/// The cost of one more barrier between threads, including the cache lines that they exchange.
/// Assumed to be 2 µs.
constexpr std::uint64_t kBarrierMacs = 16'000;

using TileInputRows = std::array<RoundedRow, kInt8TileRows>;

/// Requests the lines to which the products of groups with some rows are stored.
void request_products(const MatmulArgs& args, Span32 groups, Span32 batch) {
  for (std::uint32_t i = batch.begin; i < batch.end; ++i)
    for (std::uint32_t g = groups.begin; g < groups.end; ++g)
      __builtin_prefetch(args.out + std::size_t{i} * args.weight.n_out + g * kGroupRows, 1);
}

/// Adds the bias of a group, if any, to its products with some rows.
void add_bias(const MatmulArgs& args, const LaunchPermit& permit, std::uint32_t group,
              std::uint32_t n_rows, GroupDots& dots) {
  if (!args.bias) return;
  const std::uint32_t first = group * kGroupRows;
  const std::uint32_t n = std::min(args.weight.n_out - first, kGroupRows);
  const float* bias = permit.open(args.bias) + first;
  for (std::uint32_t i = 0; i < n_rows; ++i)
    for (std::uint32_t o = 0; o < n; ++o) dots[i][o] += bias[o];
}

}  // namespace

/// How the rows of x are computed and rounded, in parts of `columns`.
struct CpuBackend::RoundingPlan {
  const ProjectionArgs& args;
  std::uint32_t n_rows;
  std::uint32_t n_in;
  std::uint32_t block;
  std::uint32_t columns;
  std::uint64_t macs_per_element = kMacsPerElement;
  LaunchSite site;

  RoundingPlan(const ProjectionArgs& projection, std::uint32_t rows)
      : args(projection),
        n_rows(rows),
        n_in(first().weight.n_in),
        block(group_format(first().weight.type).elements),
        columns(n_in),
        site(first().site) {
    if (args.norm != nullptr) {
      macs_per_element = 2 * kMacsPerElement;
      site = args.norm->site;
    }
    if (args.swiglu != nullptr) {
      macs_per_element = kMacsPerExp + kMacsPerElement;
      site = LaunchSite::SwiGlu;
      columns = std::min(n_in, kGateColumns);
    }
  }
  const MatmulArgs& first() const { return args.matmuls.front(); }
  /// True if a product's output begins in memory from which the rows are computed.
  bool is_overwritten() const {
    const std::size_t source_rows = first().select.empty() ? n_rows : first().select.back() + 1;
    const auto is_part_of = [&](const float* source, const float* out) {
      return !std::less<>()(out, source) && std::less<>()(out, source + source_rows * n_in);
    };
    return std::ranges::any_of(args.matmuls, [&](const MatmulArgs& matmul) {
      if (args.norm != nullptr) return is_part_of(args.norm->x, matmul.out);
      return is_part_of(first().x, matmul.out) ||
             (args.swiglu != nullptr && is_part_of(args.swiglu->up, matmul.out));
    });
  }
  std::uint32_t parts_per_row() const { return tiles_for(n_in, columns); }
  std::uint32_t n_parts() const { return n_rows * parts_per_row(); }
  std::uint32_t parts_per_tile() const { return items_per_tile(columns * macs_per_element); }
  std::uint64_t macs() const { return std::uint64_t{n_rows} * n_in * macs_per_element; }
};

/// Rounded rows from `first` on: rows that all threads share, or a thread's own.
struct CpuBackend::InputRows {
  RoundedRows& rows;
  std::size_t first;

  RoundedRow row(std::size_t i) const { return rows.row(first + i); }
};

/// The rounded rows of a tile.
struct CpuBackend::TileInputs {
  std::uint32_t n_rows;
  TileInputRows x;  // the first n_rows are used

  TileInputs(InputRows rows, Span32 batch) : n_rows(batch.end - batch.begin) {
    for (std::uint32_t i = 0; i < n_rows; ++i) x[i] = rows.row(batch.begin + i);
  }
  std::span<const RoundedRow> all() const { return std::span(x).first(n_rows); }
};

/// Returns columns of row i of x. A norm or SwiGLU computes them into the thread's own row.
const float* CpuBackend::input_part(const LaunchPermit& permit, std::uint32_t thread,
                                    const RoundingPlan& plan, std::uint32_t i, Span32 columns) {
  const std::size_t at = selected_index(plan.first(), i) * std::size_t{plan.n_in} + columns.begin;
  float* const own = widened_rows_.data() + thread * kDotOutputs * widened_stride_;
  if (const RmsNormArgs* norm = plan.args.norm) {
    kernels_.rms_norm_row({.x = norm->x + at,
                           .weight = permit.open(norm->weight),
                           .out = own,
                           .width = plan.n_in,
                           .epsilon = norm->epsilon});
    return own;
  }
  if (const SwiGluArgs* swiglu = plan.args.swiglu) {
    const std::uint32_t n = columns.end - columns.begin;
    std::copy_n(swiglu->gate + at, n, own);
    kernels_.swiglu(own, swiglu->up + at, n);
    return own;
  }
  return plan.first().x + at;
}

void CpuBackend::round_parts(const LaunchPermit& permit, std::uint32_t thread,
                             const RoundingPlan& plan, Span32 parts, InputRows to_rows) {
  for (std::uint32_t part = parts.begin; part < parts.end; ++part) {
    const std::uint32_t row = part / plan.parts_per_row();
    const Span32 columns = tile_span(part % plan.parts_per_row(), plan.columns, plan.n_in);
    const float* x = input_part(permit, thread, plan, row, columns);
    const RoundedRowBuffer to = to_rows.rows.buffer(to_rows.first + row);
    kernels_.round_row(x, columns.end - columns.begin, plan.block,
                       {to.q + columns.begin, to.scale + columns.begin / plan.block,
                        to.sums + columns.begin / kInt8Strip});
  }
}

/// True if threads lose less time when each rounds all rows than when they wait for each other.
bool CpuBackend::should_each_thread_round(const RoundingPlan& plan) const {
  const std::uint64_t repeated = plan.macs() * (launcher_.threads() - 1) / launcher_.threads();
  return plan.n_rows <= kOwnRows && plan.macs() <= kTileMacs && repeated <= kBarrierMacs;
}

/// Computes and rounds the rows of x, then calls `tile(permit, rows, index)` for each tile. Few
/// rows are rounded by each thread in a prologue, many in a separate launch.
template <class Tile>
LaunchStatus CpuBackend::run_rounded(const LaunchContext& context, const RoundingPlan& plan,
                                     const TilePasses& tiles, Tile&& tile) {
  const UnitLabel multiplies = label(context, plan.first().site);
  const auto unit = [&](const LaunchPermit& permit, InputRows rows, std::uint32_t index) {
    tile(permit, rows, index);
    kernels_.end_int8_unit();
  };
  if (should_each_thread_round(plan)) {
    expects(!plan.is_overwritten(), "what a late prologue reads, tiles do not write");
    const auto own_rows = [&](std::uint32_t thread) {
      return InputRows{own_rounded_, std::size_t{thread} * kOwnRows};
    };
    const Prologue prologue{
        label(context, plan.site), [&](const LaunchPermit& permit, std::uint32_t thread) {
          round_parts(permit, thread, plan, {0, plan.n_parts()}, own_rows(thread));
        }};
    return launcher_.run_after(prologue, context, multiplies, tiles,
                               [&](const LaunchPermit& permit, std::uint32_t thread,
                                   std::uint32_t index) { unit(permit, own_rows(thread), index); });
  }
  const InputRows shared{rounded_, 0};
  used_rounded_ = std::max(used_rounded_, plan.n_rows);
  const std::uint32_t per_tile = plan.parts_per_tile();
  const LaunchStatus rounded = launcher_.run(
      context, label(context, plan.site), tiles_for(plan.n_parts(), per_tile),
      [&](const LaunchPermit& permit, std::uint32_t thread, std::uint32_t index) {
        round_parts(permit, thread, plan, tile_span(index, per_tile, plan.n_parts()), shared);
      });
  if (rounded.none_live()) return rounded;
  const LaunchStatus multiplied =
      launcher_.run(context, multiplies, tiles,
                    [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t index) {
                      unit(permit, shared, index);
                    });
  return {rounded.live & multiplied.live};
}

/// Matmuls that round x alike share the rounded rows and a launch.
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

const Int8Units& CpuBackend::int8_units(std::uint32_t n_batch) const {
  return n_batch < kernels_.int8_few_rows ? kernels_.int8_units_few_rows : kernels_.int8_units;
}

GroupTiles CpuBackend::group_tiles(const WeightMatrix& weight, std::uint32_t n_groups,
                                   std::uint32_t n_batch, std::uint32_t matrices) const {
  return GroupTiles::plan(
      weight, n_groups, n_batch,
      {.units = int8_units(n_batch), .matrices = matrices, .threads = launcher_.threads()});
}

/// Runs all matmuls in one launch, under the first one's site.
LaunchStatus CpuBackend::project_int8(const LaunchContext& context, const ProjectionArgs& args) {
  expect_within_limits(limits_, context, args);
  const std::uint32_t n_batch = selected_rows(context, args.matmuls.front());
  if (n_batch == 0) return {context.gates->all()};
  std::array<GroupTiles, ProjectionArgs::kMaxMatmuls> plans{};
  static_assert(ProjectionArgs::kMaxMatmuls <= TilePasses::kMaxAdded);
  TilePasses tiles;  // one pass per matrix
  for (std::size_t m = 0; m < args.matmuls.size(); ++m) {
    const WeightMatrix& weight = args.matmuls[m].weight;
    plans[m] = group_tiles(weight, row_groups(weight.n_out), n_batch);
    tiles.add(plans[m].count());
  }
  return run_rounded(context, RoundingPlan(args, n_batch), tiles,
                     [&](const LaunchPermit& permit, InputRows rows, std::uint32_t tile) {
                       std::size_t m = 0;
                       for (; tile >= plans[m].count(); ++m) tile -= plans[m].count();
                       multiply_tile(permit, args.matmuls[m], plans[m].groups(tile),
                                     plans[m].batch(tile), rows);
                     });
}

/// Computes the products of up to kInt8TileGroups groups with rows of x.
void CpuBackend::multiply_groups(const LaunchPermit& permit, const WeightMatrix& weight,
                                 Span32 groups, std::span<const RoundedRow> x, GroupDots* dots) {
  kernels_.dot_groups_int8({.type = weight.type,
                            .groups = matrix_group(permit, weight, groups.begin),
                            .n_groups = groups.end - groups.begin,
                            .n_in = weight.n_in,
                            .x = x.data(),
                            .n_rows = static_cast<std::uint32_t>(x.size()),
                            .out = dots});
}

/// Stores the products of a group. The last group of a matrix may have fewer outputs than rows.
void CpuBackend::store_dots(const MatmulArgs& args, const LaunchPermit& permit, std::uint32_t group,
                            Span32 batch, const GroupDots& dots) {
  const std::size_t n_out = args.weight.n_out;
  const std::size_t first = std::size_t{group} * kGroupRows;
  if (first + kGroupRows > n_out) {
    for (std::uint32_t i = batch.begin; i < batch.end; ++i)
      store_group(args, permit, group, i, dots[i - batch.begin]);
    return;
  }
  kernels_.store_dots({.dots = &dots,
                       .n_rows = batch.end - batch.begin,
                       .bias = args.bias ? permit.open(args.bias) + first : nullptr,
                       .accumulate = args.accumulate,
                       .out = args.out + batch.begin * n_out + first,
                       .stride = n_out});
}

void CpuBackend::multiply_tile(const LaunchPermit& permit, const MatmulArgs& args, GroupSpan groups,
                               Span32 batch, InputRows rows) {
  const TileInputs x(rows, batch);
  groups.each_set([&](Span32 set) {
    alignas(64) GroupDots dots[kInt8TileGroups];
    request_products(args, set, batch);
    multiply_groups(permit, args.weight, set, x.all(), dots);
    for (std::uint32_t g = set.begin; g < set.end; ++g)
      store_dots(args, permit, g, batch, dots[g - set.begin]);
  });
}

/// Computes silu(gate) * up for a tile. Products stay in the first cache; those of up are not
/// stored.
void CpuBackend::multiply_gated(const LaunchPermit& permit, const FeedForwardArgs& args,
                                GroupSpan groups, Span32 batch, InputRows rows) {
  const TileInputs x(rows, batch);
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
      kernels_.swiglu(dots[0], up[g - set.begin][0], std::size_t{x.n_rows} * kGroupRows);
      store_dots(gated, permit, g, batch, dots);
    }
  });
}

/// gate = silu(gate) * up, for some rows and the columns of some groups.
void CpuBackend::gate_block(const FeedForwardArgs& args, GroupSpan groups, Span32 batch) {
  const std::size_t n_out = args.gate.weight.n_out;
  const std::size_t first = std::size_t{groups.begin} * kGroupRows;
  const std::size_t n = std::min(std::size_t{groups.end} * kGroupRows, n_out) - first;
  for (std::uint32_t i = batch.begin; i < batch.end; ++i)
    kernels_.swiglu(args.gate.out + i * n_out + first, args.up.out + i * n_out + first, n);
}

/// Runs gate and up in one launch. With few rows all tiles of the gate come first, because memory
/// is faster with one matrix at a time. The unit that completes a pair of tiles applies SwiGLU to
/// it.
LaunchStatus CpuBackend::gate_and_up(const LaunchContext& context, const FeedForwardArgs& args,
                                     const RoundingPlan& plan) {
  const bool gates_per_tile = plan.n_rows >= kInt8TileRows;
  const GroupTiles tiles = group_tiles(args.gate.weight, row_groups(args.gate.weight.n_out),
                                       plan.n_rows, gates_per_tile ? 2 : 1);
  const std::uint32_t n_tiles = tiles.count();
  if (gates_per_tile)
    return run_rounded(context, plan, n_tiles,
                       [&](const LaunchPermit& permit, InputRows rows, std::uint32_t tile) {
                         multiply_gated(permit, args, tiles.groups(tile), tiles.batch(tile), rows);
                       });
  expects(n_tiles <= products_left_.size(), "a feed-forward fits the backend's limits");
  // Relaxed: the launch publishes the counts.
  for (std::uint32_t t = 0; t < n_tiles; ++t) products_left_[t].store(2, std::memory_order_relaxed);
  TilePasses passes;
  passes.add(n_tiles, 2);
  return run_rounded(context, plan, passes,
                     [&](const LaunchPermit& permit, InputRows rows, std::uint32_t index) {
                       const std::uint32_t tile = index % n_tiles;
                       multiply_tile(permit, index < n_tiles ? args.gate : args.up,
                                     tiles.groups(tile), tiles.batch(tile), rows);
                       // The first decrement releases its products, and the second acquires them.
                       if (products_left_[tile].fetch_sub(1, std::memory_order_acq_rel) == 1)
                         gate_block(args, tiles.groups(tile), tiles.batch(tile));
                     });
}

/// Fuses gate and up of the same type, unless the smallest tile of both takes longer than a unit
/// may.
LaunchStatus CpuBackend::feed_forward(const LaunchContext& context, const FeedForwardArgs& args) {
  const auto is_plain = [](const MatmulArgs& matmul_args) {
    return matmul_args.weight.layout == MatrixLayout::RowGroups && !matmul_args.accumulate;
  };
  const std::uint32_t n_batch = selected_rows(context, args.gate);
  const Int8Units& units = int8_units(n_batch);
  const std::uint64_t smallest =
      std::uint64_t{2 * units.min_rows * kGroupRows} * args.gate.weight.n_in;
  const bool exceeds_unit = n_batch >= kInt8TileRows && smallest > units.tile_macs;
  if (!is_plain(args.gate) || !is_plain(args.up) || args.gate.weight.type != args.up.weight.type ||
      n_batch == 0 || exceeds_unit)
    return Backend::feed_forward(context, args);
  const MatmulArgs wide[] = {args.gate, args.up};
  const ProjectionArgs projection{.norm = args.norm, .matmuls = wide};
  expect_within_limits(limits_, context, projection);
  expects(args.gate.weight.n_out == args.up.weight.n_out, "gate and up are equally wide");
  const LaunchStatus gated = gate_and_up(context, args, RoundingPlan(projection, n_batch));
  if (gated.none_live()) return gated;
  return {gated.live & matmul(context, args.down).live};
}

/// Runs one matmul per expert over the expert's items, as expert_matmul does with floats.
LaunchStatus CpuBackend::expert_matmul_int8(const LaunchContext& context,
                                            const ExpertMatmulArgs& args,
                                            const ExpertItems& batch) {
  const WeightMatrix& weight = args.weight;
  const std::uint32_t n_groups = args.n_out() / kGroupRows;
  const auto tiles_of = [&](std::uint32_t expert) {
    return group_tiles(weight, n_groups, batch.first[expert + 1] - batch.first[expert]);
  };
  first_tile_[0] = 0;
  for (std::uint32_t e = 0; e < args.n_experts; ++e) {
    const bool is_used = batch.first[e + 1] > batch.first[e];
    first_tile_[e + 1] = first_tile_[e] + (is_used ? tiles_of(e).count() : 0);
  }
  const auto multiply = [&](const LaunchPermit& permit, InputRows rows, std::uint32_t tile) {
    const std::uint32_t expert = expert_of_tile(args.n_experts, tile);
    const GroupTiles tiles = tiles_of(expert);
    const Span32 span = tiles.batch(tile - first_tile_[expert]);
    const std::uint32_t n_rows = span.end - span.begin;
    const std::uint32_t* items = batch.items.data() + batch.first[expert] + span.begin;
    TileInputRows x{};
    for (std::uint32_t i = 0; i < n_rows; ++i) x[i] = rows.row(items[i] / args.items_per_x);
    const GroupSpan groups = tiles.groups(tile - first_tile_[expert]);
    const std::uint32_t first = expert * n_groups;
    groups.each_set([&](Span32 set) {
      alignas(64) GroupDots dots[kInt8TileGroups];
      multiply_groups(permit, weight, {first + set.begin, first + set.end}, {x.data(), n_rows},
                      dots);
      for (std::uint32_t i = 0; i < n_rows; ++i)
        for (std::uint32_t g = set.begin; g < set.end; ++g)
          std::copy_n(dots[g - set.begin][i], kGroupRows,
                      args.out + (std::size_t{items[i]} * n_groups + g) * kGroupRows);
    });
  };
  const MatmulArgs inputs{.site = args.site, .weight = weight, .x = args.x, .out = args.out};
  const ProjectionArgs projection{.matmuls = {&inputs, 1}};
  return run_rounded(context, RoundingPlan(projection, expert_inputs(args)),
                     first_tile_[args.n_experts], multiply);
}

}  // namespace leasehold
