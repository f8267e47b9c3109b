/// Tiles of int8 matmuls: each product once, in units of limited size.
#include "kernels/cpu/group_tiles.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "common/random.hpp"
#include "kernels/quant/row_group.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold::testing {
namespace {

constexpr GroupTiles::Costs kCosts{
    .units = {.tile_macs = 1'600'000, .groups_at_once = 2}, .matrices = 1, .threads = 2};

WeightMatrix matrix(std::uint32_t n_groups, std::uint32_t n_in,
                    TensorType type = TensorType::Q6_K) {
  return {.type = type,
          .layout = MatrixLayout::RowGroups,
          .n_out = n_groups * kGroupRows,
          .n_in = n_in,
          .data = {}};
}

}  // namespace

TEST_CASE("group tiles: every group meets every row of the batch once") {
  SeededRandom random(test_seed());
  CAPTURE(test_seed());
  for (int shape = 0; shape < 500; ++shape) {
    const auto n_groups = static_cast<std::uint32_t>(1 + random.below(70));
    const auto n_in = static_cast<std::uint32_t>(1 + random.below(75)) * 256;
    const auto n_batch = static_cast<std::uint32_t>(1 + random.below(50));
    CAPTURE(n_groups, n_in, n_batch);
    const GroupTiles tiles = GroupTiles::plan(matrix(n_groups, n_in), n_groups, n_batch, kCosts);
    std::vector<int> met(std::size_t{n_groups} * n_batch);
    for (std::uint32_t tile = 0; tile < tiles.count(); ++tile) {
      const GroupSpan groups = tiles.groups(tile);
      const Span32 batch = tiles.batch(tile);
      REQUIRE(groups.begin < groups.end);
      REQUIRE(batch.end - batch.begin <= kInt8TileRows);
      for (std::uint32_t g = groups.begin; g < groups.end; ++g)
        for (std::uint32_t i = batch.begin; i < batch.end; ++i) ++met[g * n_batch + i];
    }
    REQUIRE(met == std::vector<int>(met.size(), 1));
  }
}

TEST_CASE("group tiles: only the last set of a matrix has fewer groups") {
  for (const std::uint32_t n_groups : {1, 2, 5, 56, 57, 304}) {
    for (const std::uint32_t n_in : {1024, 2048, 4864}) {
      CAPTURE(n_groups, n_in);
      const GroupTiles tiles = GroupTiles::plan(matrix(n_groups, n_in), n_groups, 32, kCosts);
      for (std::uint32_t tile = 0; tile < tiles.count(); ++tile) {
        const GroupSpan groups = tiles.groups(tile);
        REQUIRE(groups.at_once == 2);
        REQUIRE(groups.begin % 2 == 0);
        REQUIRE((groups.end % 2 == 0 || groups.end == n_groups));
      }
    }
  }
}

TEST_CASE("group tiles: few rows, and sets too large for a unit take one group at a time") {
  for (const TensorType type : {TensorType::Q6_K, TensorType::Q8_0}) {
    const auto at_once = [&](std::uint32_t n_in, std::uint32_t n_batch) {
      return GroupTiles::plan(matrix(8, n_in, type), 8, n_batch, kCosts).at_once;
    };
    CAPTURE(name(type));
    CHECK(at_once(1024, least_rows_for_two_groups(type) - 1) == 1);
    CHECK(at_once(1024, least_rows_for_two_groups(type)) == 2);
    CHECK(at_once(14336, 64) == 1);
  }
}

TEST_CASE("group tiles: rows of a format from which two groups are multiplied together") {
  CHECK(least_rows_for_two_groups(TensorType::Q4_0) == 4);
  CHECK(least_rows_for_two_groups(TensorType::Q5_1) == 4);
  CHECK(least_rows_for_two_groups(TensorType::Q8_0) == 9);
  CHECK(least_rows_for_two_groups(TensorType::Q4_K) == 9);
}

TEST_CASE("group tiles: a unit has limited products and weights, of one matrix or two") {
  for (const TensorType type : {TensorType::Q4_0, TensorType::Q4_K, TensorType::Q8_0})
    for (const std::uint32_t matrices : {1, 2})
      for (const std::uint32_t n_in : {896, 4096, 6144, 7168, 10240, 12288, 14336, 18944}) {
        GroupTiles::Costs costs = kCosts;
        costs.matrices = matrices;
        const WeightMatrix weight = matrix(64, n_in / 256 * 256, type);
        const std::uint64_t group_bytes = row_group_bytes(type, weight.n_in);
        const GroupTiles tiles = GroupTiles::plan(weight, 64, 32, costs);
        CAPTURE(name(type), matrices, n_in);
        for (std::uint32_t tile = 0; tile < tiles.count(); ++tile) {
          const GroupSpan groups = tiles.groups(tile);
          const std::uint64_t n_groups = groups.end - groups.begin;
          const std::uint64_t macs =
              n_groups * kGroupRows * weight.n_in * tiles.batch_per_tile * matrices;
          const std::uint64_t least_macs = 4 * kGroupRows * std::uint64_t{weight.n_in} * matrices;
          REQUIRE(macs <= std::max(costs.units.tile_macs * 3 / 2, least_macs));
          REQUIRE(n_groups * group_bytes * matrices <=
                  std::max(kTileWeightBytes, group_bytes * matrices));
        }
      }
}

TEST_CASE("group tiles: a path with large tiles multiplies whole tiles of wide rows") {
  const auto rows = [](std::uint32_t n_in, std::uint32_t matrices, std::uint32_t min_rows) {
    return GroupTiles::plan(matrix(64, n_in), 64, 32,
                            {.units = {.tile_macs = 3'200'000, .min_rows = min_rows},
                             .matrices = matrices,
                             .threads = 2})
        .batch_per_tile;
  };
  for (const std::uint32_t n_in : {4096, 11008, 14336}) {
    CAPTURE(n_in);
    CHECK(rows(n_in, 1, kInt8TileRows) == kInt8TileRows);
    CHECK(rows(n_in, 2, kInt8TileRows) == kInt8TileRows);
  }
  CHECK(rows(14336, 1, 4) == 8);
  CHECK(rows(18944, 2, 4) == 4);
}

}  // namespace leasehold::testing
