#include "kernels/cpu/low_rank.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {
namespace {

/// The time to read a weight from memory, in multiply-adds.
constexpr std::uint64_t kMacsPerWeight = 3;
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

std::uint32_t total_rank(const LowRankArgs& args, const LowRankMatrix* adapter) {
  std::uint32_t rank = 0;
  for (const LowRankProduct& product : args.products) rank += adapter[product.slot].rank;
  return rank;
}

}  // namespace

std::uint64_t LowRankProducts::Work::macs() const {
  return std::uint64_t{outputs} * macs_each * (group->rows.size() + kMacsPerWeight);
}

void LowRankProducts::add_part(const Work& work, std::uint64_t tile_macs) {
  const std::uint32_t first =
      n_parts_ == 0 ? 0 : parts_[n_parts_ - 1].first_tile + parts_[n_parts_ - 1].tiles.count();
  parts_[n_parts_++] = {work.group, work.product, first,
                        MatmulTiles::plan(work.outputs, work.macs_each,
                                          static_cast<std::uint32_t>(work.group->rows.size()),
                                          {.tile_macs = tile_macs,
                                           .macs_per_output = work.macs_each * kMacsPerWeight,
                                           .outputs_at_once = work.outputs_at_once})};
}

const LowRankProducts::Part& LowRankProducts::part_of(std::uint32_t tile) const {
  const auto parts = std::span(parts_).first(n_parts_);
  return *std::prev(std::ranges::upper_bound(parts, tile, {}, &Part::first_tile));
}

template <class Use>
LaunchStatus LowRankProducts::each_tile(const LaunchContext& context, LaunchSite site,
                                        std::span<const Work> works, Use&& use) {
  std::uint64_t macs = 0;
  for (const Work& work : works) macs += work.macs();
  const std::uint64_t tile_macs =
      std::clamp(macs / (cpu_.launcher.threads() * kTilesPerThread), kLeastTileMacs,
                 std::max(cpu_.kernels.dot_tile_macs, kLeastTileMacs));
  n_parts_ = 0;
  for (const Work& work : works)
    if (work.outputs > 0) add_part(work, tile_macs);
  if (n_parts_ == 0) return {context.gates->all()};
  const Part& last = parts_[n_parts_ - 1];
  return cpu_.launcher.run(context, label(context, site, Touches::TenantMemory),
                           last.first_tile + last.tiles.count(),
                           [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                             const Part& part = part_of(tile);
                             use(permit, part, tile - part.first_tile);
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
  for (std::size_t g = 0; g < groups.size(); ++g)
    works[g] = {.group = &groups[g],
                .product = 0,
                .outputs = total_rank(args, groups[g].adapter),
                .macs_each = args.n_in,
                .outputs_at_once = cpu_.kernels.dot_tile_outputs};
  return each_tile(context, args.products.front().site, std::span(works).first(groups.size()),
                   [&](const LaunchPermit& permit, const Part& part, std::uint32_t tile) {
                     reduce_tile(permit, context, args, part, tile);
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
      const std::uint32_t rank = group.adapter[product.slot].rank;
      if (rank > 0)
        works[n++] = {.group = &group,
                      .product = p,
                      .outputs = tiles_for(product.n_out, kStrip),
                      .macs_each = rank * kStrip,
                      .outputs_at_once = kDotOutputs};
    }
  return each_tile(context, args.products.front().site, std::span(works).first(n),
                   [&](const LaunchPermit& permit, const Part& part, std::uint32_t tile) {
                     expand_tile(permit, context, args, part, tile);
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
                                  const LowRankArgs& args, const Part& part,
                                  std::uint32_t tile) const {
  const Span32 outputs = part.tiles.outputs(tile);
  const Span32 batch = part.tiles.batch(tile);
  const auto rows = part.group->rows.subspan(batch.begin, batch.end - batch.begin);
  each_live<kDotInputs>(permit, context, rows, [&](std::span<const std::uint32_t> live) {
    DotTile dots{.n_inputs = static_cast<std::uint32_t>(live.size()), .n = args.n_in};
    for (std::size_t i = 0; i < live.size(); ++i)
      dots.x[i] = args.x + std::size_t{live[i]} * args.n_in;
    for (std::uint32_t o = outputs.begin; o < outputs.end; o += dots.n_outputs) {
      const std::uint32_t most = std::min(cpu_.kernels.dot_tile_outputs, outputs.end - o);
      const ReducedRows set(permit, args, part.group->adapter, o, most, dots);
      dots.n_outputs = set.n;
      DotProducts products;
      cpu_.kernels.dot_tile(dots, products);
      for (std::uint32_t j = 0; j < set.n; ++j)
        for (std::size_t i = 0; i < live.size(); ++i)
          reduced_row(args, live[i])[set.rows[j].offset] =
              set.rows[j].scale * products[j / kDotOutputGroup][i][j % kDotOutputGroup];
    }
  });
}

void LowRankProducts::expand_tile(const LaunchPermit& permit, const LaunchContext& context,
                                  const LowRankArgs& args, const Part& part,
                                  std::uint32_t tile) const {
  const LowRankProduct& product = args.products[part.product];
  const LowRankMatrix& matrix = part.group->adapter[product.slot];
  const Span32 strips = part.tiles.outputs(tile);
  const Span32 batch = part.tiles.batch(tile);
  const std::size_t first = std::size_t{strips.begin} * kStrip;
  const auto rows = part.group->rows.subspan(batch.begin, batch.end - batch.begin);
  each_live<kLowRankRows>(permit, context, rows, [&](std::span<const std::uint32_t> live) {
    LowRankTile sums{
        .type = matrix.type,
        .b = permit.open(matrix.b) + row_size_bytes(matrix.type, first),
        .stride = product.n_out,
        .rank = matrix.rank,
        .n_outputs = std::min(strips.end * kStrip, product.n_out) - strips.begin * kStrip,
        .n_rows = static_cast<std::uint32_t>(live.size())};
    for (std::size_t i = 0; i < live.size(); ++i) {
      sums.h[i] = reduced_row(args, live[i]) + std::size_t{part.product} * args.max_rank;
      sums.out[i] = product.out + std::size_t{live[i]} * product.n_out + first;
    }
    cpu_.kernels.add_low_rank(sums);
  });
}

}  // namespace leasehold
