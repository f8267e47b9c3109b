#include "worker/kv/block_pool.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "common/random.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold {
namespace {

BlockPool two_extents(std::uint32_t first, std::uint32_t second) {
  BlockPool pool;
  pool.add_extent(ExtentId{1}, first);
  pool.add_extent(ExtentId{2}, second);
  return pool;
}

}  // namespace

TEST_CASE("block pool: take uses the fullest extent first, so that other extents become free") {
  BlockPool pool = two_extents(3, 2);
  REQUIRE(pool.take() == BlockId{ExtentId{2}, 0});
  REQUIRE(pool.take() == BlockId{ExtentId{2}, 1});
  REQUIRE(pool.take() == BlockId{ExtentId{1}, 0});
  pool.release({ExtentId{2}, 0});
  REQUIRE(pool.take() == BlockId{ExtentId{2}, 0});
}

TEST_CASE("block pool: an empty pool has no block to take and holds none") {
  BlockPool pool;
  REQUIRE_FALSE(pool.take().has_value());
  REQUIRE(pool.total_blocks() == 0);
  REQUIRE_FALSE(pool.holds({ExtentId{1}, 0}));
}

TEST_CASE("block pool: only extents without a held block are removed") {
  BlockPool pool = two_extents(2, 2);
  const BlockId held = *pool.take();
  REQUIRE(pool.remove_free_extents(5) == std::vector{ExtentId{2}});
  REQUIRE(pool.total_blocks() == 2);
  REQUIRE(pool.remove_free_extents(5).empty());
  pool.release(held);
  REQUIRE(pool.remove_free_extents(0).empty());
  REQUIRE(pool.remove_free_extents(1) == std::vector{held.extent});
  REQUIRE(pool.total_blocks() == 0);
}

TEST_CASE("block pool: a random walk conserves blocks and never holds one twice") {
  SeededRandom random(testing::test_seed(20261120));
  BlockPool pool;
  std::set<BlockId> held;
  std::map<ExtentId, std::uint32_t> extents;
  CAPTURE(testing::test_seed(20261120));
  for (int step = 0; step < 5000; ++step) {
    const std::uint64_t what = random.below(20);
    if (what == 0) {
      const ExtentId id{1000u + static_cast<std::uint64_t>(step)};
      extents[id] = static_cast<std::uint32_t>(random.below(7));
      pool.add_extent(id, extents[id]);
    } else if (what == 1) {
      for (const ExtentId gone : pool.remove_free_extents(1)) extents.erase(gone);
    } else if (what < 11) {
      const auto block = pool.take();
      if (block) REQUIRE(held.insert(*block).second);
      if (!block) REQUIRE(pool.free_blocks() == 0);
    } else if (!held.empty()) {
      const auto which = std::next(held.begin(), static_cast<long>(random.below(held.size())));
      pool.release(*which);
      held.erase(which);
    }
    std::uint32_t total = 0;
    for (const auto& [id, blocks] : extents) total += blocks;
    REQUIRE(pool.total_blocks() == total);
    REQUIRE(pool.held_blocks() == held.size());
    REQUIRE(pool.free_blocks() + pool.held_blocks() == total);
    for (const BlockId block : held) REQUIRE(pool.holds(block));
  }
}

}  // namespace leasehold
