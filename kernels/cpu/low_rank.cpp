#include "kernels/cpu/low_rank.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {
namespace {

/// The time to read an element from memory, in multiply-adds.
constexpr std::uint64_t macs_to_read(TensorType type) {
  return type == TensorType::F32 ? 6 : 3;
}
/// The smallest tile: about 1 µs, so that taking it costs little.
constexpr std::uint64_t kLeastTileMacs = 16'000;
/// Tiles per thread, so that threads finish a launch together.
constexpr std::uint64_t kTilesPerThread = 3;
/// Outputs of B·h that a tile computes as one.
constexpr std::uint32_t kStrip = 64;

/// Rows of A to multiply, and where their dots go. The rows of all products of a group count as
/// those of one matrix.
struct ReducedRows {
  struct Row {
    float scale;
    std::size_t offset;  ///< In a row of h.
  };
  std::array<Row, kDotOutputs> rows;
  std::uint32_t n = 0;

  /// Takes at most `most` rows of one type from row `first` on, and opens them.
  ReducedRows(const LaunchPermit& permit, const LowRankArgs& args, const LowRankMatrix* adapter,
              std::uint32_t first, std::uint32_t most, DotTile& tile) {
    std::uint32_t p = 0;
    std::uint32_t k = first;
    for (; k >= adapter[args.products[p].slot].rank; ++p) k -= adapter[args.products[p].slot].rank;
    tile.type = adapter[args.products[p].slot].type;
    for (; p < args.products.size(); ++p, k = 0) {
      const LowRankMatrix& matrix = adapter[args.products[p].slot];
      if (matrix.rank > 0 && matrix.type != tile.type) return;
      for (; k < matrix.rank; ++k, ++n) {
        if (n == most) return;
        tile.weights[n] = permit.open(matrix.a) + k * row_size_bytes(matrix.type, args.n_in);
        rows[n] = {matrix.scale, std::size_t{p} * args.max_rank + k};
      }
    }
  }
};

/// The first element of h of a row: [n_products, max_rank].
float* reduced_row(const LowRankArgs& args, std::uint32_t row) {
  return args.h + std::size_t{row} * args.products.size() * args.max_rank;
}

/// All rows of A of an adapter that share x.
struct RowsOfA {
  std::uint32_t count = 0;
  std::uint64_t macs_to_read = 0;  ///< Per element; of the widest type.

  RowsOfA(const LowRankArgs& args, const LowRankMatrix* adapter) {
    for (const LowRankProduct& product : args.products) {
      const LowRankMatrix& matrix = adapter[product.slot];
      if (matrix.rank == 0) continue;
      count += matrix.rank;
      macs_to_read = std::max(macs_to_read, leasehold::macs_to_read(matrix.type));
    }
  }
};

}  // namespace

std::uint64_t LowRankProducts::Work::macs() const {
  return std::uint64_t{outputs} * macs_each * (group->rows.size() + macs_to_read);
}

void LowRankProducts::add_part(const Work& work, std::uint64_t tile_macs) {
  const auto n_rows = static_cast<std::uint32_t>(work.group->rows.size());
  parts_[n_parts_++] = {work.group, work.product, n_tiles_,
                        MatmulTiles::plan(work.outputs, work.macs_each, n_rows,
                                          {.tile_macs = tile_macs,
                                           .macs_per_output = work.macs_each * work.macs_to_read,
                                           .outputs_at_once = work.outputs_at_once})};
  n_tiles_ += parts_[n_parts_ - 1].tiles.count();
}

LowRankProducts::Tile LowRankProducts::tile_of(std::uint32_t tile) const {
  const auto parts = std::span(parts_).first(n_parts_);
  const Part& part = *std::prev(std::ranges::upper_bound(parts, tile, {}, &Part::first_tile));
  return {part, tile - part.first_tile};
}

std::optional<LowRankProducts::Tile> LowRankProducts::tile_after(const LaunchPermit& permit,
                                                                 const LaunchContext& context,
                                                                 std::uint32_t tile) const {
  const std::uint32_t next = tile + cpu_.launcher.threads();
  if (next >= n_tiles_) return std::nullopt;
  const Tile after = tile_of(next);
  if (!permit.is_live(context.rows[after.rows().front()].sequence)) return std::nullopt;
  return after;
}

template <class Use>
LaunchStatus LowRankProducts::each_tile(const LaunchContext& context, LaunchSite site,
                                        std::span<const Work> works, Use&& use) {
  std::uint64_t macs = 0;
  for (const Work& work : works) macs += work.macs();
  const std::uint64_t tile_macs =
      std::clamp(macs / (cpu_.launcher.threads() * kTilesPerThread), kLeastTileMacs,
                 std::max(cpu_.kernels.dot_tile_macs, kLeastTileMacs));
  n_parts_ = n_tiles_ = 0;
  for (const Work& work : works)
    if (work.outputs > 0) add_part(work, tile_macs);
  if (n_tiles_ == 0) return {context.gates->all()};
  return cpu_.launcher.run(context, label(context, site, Touches::TenantMemory), n_tiles_,
                           [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                             use(permit, tile_of(tile), tile_after(permit, context, tile));
                           });
}

LaunchStatus LowRankProducts::run(const LaunchContext& context, const LowRankArgs& args) {
  expect_within_limits(cpu_.limits, context, args);
  const std::span<const Group> groups = groups_.begin(context.rows, args.adapters);
  LaunchStatus status = reduce(context, args, groups);
  if (!status.none_live()) status &= expand(context, args, groups);
  return status;
}

/// h = scale · A·x. The products' matrices are multiplied together, because they share x.
LaunchStatus LowRankProducts::reduce(const LaunchContext& context, const LowRankArgs& args,
                                     std::span<const Group> groups) {
  std::array<Work, kMaxStepSequences> works;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const RowsOfA rows(args, groups[g].adapter);
    works[g] = {.group = &groups[g],
                .product = 0,
                .outputs = rows.count,
                .macs_each = args.n_in,
                .macs_to_read = rows.macs_to_read,
                .outputs_at_once = cpu_.kernels.dot_tile_outputs};
  }
  return each_tile(
      context, args.products.front().site, std::span(works).first(groups.size()),
      [&](const LaunchPermit& permit, const Tile& tile, const std::optional<Tile>& next) {
        reduce_tile(permit, context, args, tile, next);
      });
}

/// out += B·h
LaunchStatus LowRankProducts::expand(const LaunchContext& context, const LowRankArgs& args,
                                     std::span<const Group> groups) {
  std::array<Work, kMaxParts> works;
  std::size_t n = 0;
  for (std::uint32_t p = 0; p < args.products.size(); ++p)
    for (const Group& group : groups) {
      const LowRankProduct& product = args.products[p];
      const LowRankMatrix& matrix = group.adapter[product.slot];
      if (matrix.rank > 0)
        works[n++] = {.group = &group,
                      .product = p,
                      .outputs = tiles_for(product.n_out, kStrip),
                      .macs_each = matrix.rank * kStrip,
                      .macs_to_read = macs_to_read(matrix.type),
                      .outputs_at_once = kDotOutputs};
    }
  return each_tile(
      context, args.products.front().site, std::span(works).first(n),
      [&](const LaunchPermit& permit, const Tile& tile, const std::optional<Tile>& next) {
        expand_tile(permit, context, args, tile, next);
      });
}

template <std::uint32_t kMost, class Use>
void LowRankProducts::each_live(const LaunchPermit& permit, const LaunchContext& context,
                                std::span<const std::uint32_t> rows, Use&& use) {
  std::array<std::uint32_t, kMost> live;
  std::size_t n = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (permit.is_live(context.rows[rows[i]].sequence)) live[n++] = rows[i];
    if (n == kMost || (n > 0 && i + 1 == rows.size()))
      use(std::span<const std::uint32_t>(live).first(std::exchange(n, 0)));
  }
}

void LowRankProducts::reduce_tile(const LaunchPermit& permit, const LaunchContext& context,
                                  const LowRankArgs& args, const Tile& tile,
                                  const std::optional<Tile>& next) const {
  const Span32 outputs = tile.outputs();
  const LowRankMatrix* adapter = tile.part.group->adapter;
  // Opens the rows of A from row `first` on.
  const auto take = [&](const LowRankMatrix* of, std::uint32_t first, std::uint32_t end,
                        DotTile& dots) {
    const std::uint32_t most = std::min(cpu_.kernels.dot_tile_outputs, end - first);
    return ReducedRows(permit, args, of, first, most, dots);
  };
  each_live<kDotInputs>(permit, context, tile.rows(), [&](std::span<const std::uint32_t> live) {
    DotTile dots{.n_inputs = static_cast<std::uint32_t>(live.size()), .n = args.n_in};
    for (std::size_t i = 0; i < live.size(); ++i)
      dots.x[i] = args.x + std::size_t{live[i]} * args.n_in;
    for (std::uint32_t o = outputs.begin; o < outputs.end; o += dots.n_outputs) {
      const ReducedRows set = take(adapter, o, outputs.end, dots);
      dots.n_outputs = set.n;
      dots.next_bytes = 0;
      DotTile after{};
      if (o + set.n < outputs.end)
        take(adapter, o + set.n, outputs.end, after);
      else if (next)
        take(next->part.group->adapter, next->outputs().begin, next->outputs().end, after);
      dots.next = after.weights[0];
      if (dots.next != nullptr) dots.next_bytes = set.n * row_size_bytes(dots.type, args.n_in);
      DotProducts products;
      cpu_.kernels.dot_tile(dots, products);
      for (std::uint32_t j = 0; j < set.n; ++j)
        for (std::size_t i = 0; i < live.size(); ++i)
          reduced_row(args, live[i])[set.rows[j].offset] =
              set.rows[j].scale * products[j / kDotOutputGroup][i][j % kDotOutputGroup];
    }
  });
}

/// B of a tile from its first output on.
struct LowRankProducts::TileOfB {
  const LowRankMatrix& matrix;
  std::uint32_t n_out;
  Span32 outputs;
  const std::byte* at;

  TileOfB(const LaunchPermit& permit, const LowRankArgs& args, const Tile& tile)
      : matrix(tile.part.group->adapter[args.products[tile.part.product].slot]),
        n_out(args.products[tile.part.product].n_out),
        outputs{tile.outputs().begin * kStrip, std::min(tile.outputs().end * kStrip, n_out)},
        at(permit.open(matrix.b) + row_size_bytes(matrix.type, outputs.begin)) {}
};

void LowRankProducts::expand_tile(const LaunchPermit& permit, const LaunchContext& context,
                                  const LowRankArgs& args, const Tile& tile,
                                  const std::optional<Tile>& next) const {
  const TileOfB b(permit, args, tile);
  const std::uint32_t product = tile.part.product;
  each_live<kLowRankRows>(permit, context, tile.rows(), [&](std::span<const std::uint32_t> live) {
    LowRankTile sums{.type = b.matrix.type,
                     .b = b.at,
                     .stride = b.n_out,
                     .rank = b.matrix.rank,
                     .n_outputs = b.outputs.end - b.outputs.begin,
                     .n_rows = static_cast<std::uint32_t>(live.size())};
    if (next) {
      const TileOfB after(permit, args, *next);
      sums.next = after.at;
      sums.next_stride_bytes = row_size_bytes(after.matrix.type, after.n_out);
    }
    for (std::size_t i = 0; i < live.size(); ++i) {
      sums.h[i] = reduced_row(args, live[i]) + std::size_t{product} * args.max_rank;
      sums.out[i] = args.products[product].out + std::size_t{live[i]} * b.n_out + b.outputs.begin;
    }
    cpu_.kernels.add_low_rank(sums);
  });
}

}  // namespace leasehold
