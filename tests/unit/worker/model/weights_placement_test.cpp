/// Ranges of a weights region on nodes of memory.
#include "worker/model/weights_placement.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "common/random.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold::weights_placement_test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::array<std::uint32_t, 2> kIds{4, 7};  // the system's numbers

WeightsLayout layout_of(const std::vector<std::uint64_t>& sizes_bytes) {
  std::vector<WeightTensor> weights;
  for (const std::uint64_t size : sizes_bytes)
    weights.push_back({.name = "w", .rows = 1, .columns = 1, .size_bytes = size});
  return assign_weight_offsets(std::move(weights));
}

NodeShares shares(const std::vector<std::uint32_t>& threads) {
  return NodeShares(threads);
}

/// The node whose part of a matrix has this byte; bytes between matrices belong to the one before.
std::uint32_t owner(const WeightsLayout& layout, const NodeShares& shares, std::uint64_t byte) {
  const WeightTensor* of = &layout.weights.front();
  for (const WeightTensor& weight : layout.weights)
    if (weight.size_bytes > 0 && weight.region_offset_bytes <= byte) of = &weight;
  std::uint32_t node = 0;
  for (std::uint32_t k = 0; k < shares.nodes(); ++k)
    if (shares.threads_of(k) > 0 &&
        shares.begin_of(k, of->size_bytes) <= byte - of->region_offset_bytes)
      node = k;
  return node;
}

}  // namespace

TEST_CASE("placement: each matrix is cut in proportion to the threads of nodes") {
  const WeightsLayout layout = layout_of({12 * kPage, 6 * kPage});
  CHECK(node_ranges(layout, shares({2, 1}), kIds, kPage) ==
        std::vector<NodeRange>{{0, 8 * kPage, 4},
                               {8 * kPage, 12 * kPage, 7},
                               {12 * kPage, 16 * kPage, 4},
                               {16 * kPage, 18 * kPage, 7}});
}

TEST_CASE("placement: a page lies on the node whose part has its middle") {
  const auto half = [](std::uint64_t size_bytes) {
    return node_ranges(layout_of({size_bytes}), shares({1, 1}), kIds, kPage);
  };
  CHECK(half(3 * kPage) == std::vector<NodeRange>{{0, kPage, 4}, {kPage, 3 * kPage, 7}});
  CHECK(half(3 * kPage + 128) ==
        std::vector<NodeRange>{{0, 2 * kPage, 4}, {2 * kPage, 3 * kPage + 128, 7}});
}

TEST_CASE("placement: matrices smaller than a page share the node of its middle") {
  const WeightsLayout layout = layout_of({kPage / 2 + 64, 64, 64, kPage});
  CHECK(node_ranges(layout, shares({1, 1}), kIds, kPage) ==
        std::vector<NodeRange>{{0, layout.size_bytes, 7}});
  CHECK(node_ranges(layout_of({64}), shares({1, 1}), kIds, kPage) ==
        std::vector<NodeRange>{{0, 64, 7}});
}

TEST_CASE("placement: no weights give no ranges") {
  CHECK(node_ranges(layout_of({}), shares({1, 1}), kIds, kPage).empty());
}

TEST_CASE("placement: any layout is covered once, in whole pages, each on its middle's node") {
  SeededRandom random(test_seed());
  CAPTURE(test_seed());
  const std::vector<std::uint32_t> ids{0, 1, 2};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t n = 1 + random.below(8); n > 0; --n)
      sizes.push_back(64 * (1 + random.below(random.below(2) == 0 ? 8 : 400)));
    const WeightsLayout layout = layout_of(sizes);
    const NodeShares three = shares({static_cast<std::uint32_t>(1 + random.below(5)), 1,
                                     static_cast<std::uint32_t>(1 + random.below(5))});
    const auto ranges = node_ranges(layout, three, ids, kPage);
    std::uint64_t end = 0;
    for (const NodeRange& range : ranges) {
      REQUIRE(range.begin_bytes == end);
      REQUIRE(range.begin_bytes % kPage == 0);
      REQUIRE(range.begin_bytes < range.end_bytes);
      end = range.end_bytes;
      for (std::uint64_t page = range.begin_bytes; page < range.end_bytes; page += kPage) {
        CAPTURE(sizes, page);
        REQUIRE(range.node == owner(layout, three, page + kPage / 2));
      }
    }
    REQUIRE(end == layout.size_bytes);
    for (std::size_t i = 1; i < ranges.size(); ++i) REQUIRE(ranges[i].node != ranges[i - 1].node);
  }
}

}  // namespace leasehold::weights_placement_test
