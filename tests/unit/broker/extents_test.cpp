#include "broker/books/extents.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

const Borrower kOwner{.lease = {.slot = 1, .generation = 1}};

}  // namespace

TEST_CASE("extents: eight blocks fit, or one when blocks are large, and 1024 extents are enough") {
  CHECK(choose_extent_size(256 * kMiB, 1) == 2 * kMiB);
  CHECK(choose_extent_size(256 * kMiB, 256 * 1024) == 2 * kMiB);
  CHECK(choose_extent_size(256 * kMiB, 257 * 1024) == 4 * kMiB);
  CHECK(choose_extent_size(1024 * kMiB, 32 * kMiB) == 256 * kMiB);
  CHECK(choose_extent_size(1024 * kMiB, 33 * kMiB) == 64 * kMiB);
  CHECK(choose_extent_size(64 * 1024 * kMiB, 1) == 64 * kMiB);
  CHECK(choose_extent_size(64 * kMiB, 16 * kMiB) == 16 * kMiB);  // eight do not fit the capacity
}

TEST_CASE("extents: every byte is in exactly one state") {
  ExtentBook pool({.kv_bytes = 33 * kMiB});
  pool.choose_size(kTestBlockBytes);
  CHECK(pool.free_extents() == 16);  // the last MiB is too small for an extent and stays free

  const auto taken = pool.take(MemoryPool::Kv, 3, kOwner);
  pool.move(taken[0], ExtentState::Draining);
  pool.move(taken[0], ExtentState::Scrubbing);
  pool.move(taken[1], ExtentState::Scrubbing);
  pool.free(taken[1], MemoryFate::VerifiedZero);

  pool.check_conservation();
  const auto bytes = pool.bytes_by_state();
  CHECK(bytes[static_cast<unsigned>(ExtentState::Owned)] == 2 * kMiB);
  CHECK(bytes[static_cast<unsigned>(ExtentState::Scrubbing)] == 2 * kMiB);
  CHECK(bytes[static_cast<unsigned>(ExtentState::Free)] == 29 * kMiB);
  CHECK(pool.find(taken[1]) == nullptr);
}

TEST_CASE("extents: an id names one object and is not used again") {
  ExtentBook pool({.kv_bytes = 4 * kMiB});
  pool.choose_size(kTestBlockBytes);
  const ExtentId first = pool.take(MemoryPool::Kv, 1, kOwner).front();
  pool.move(first, ExtentState::Scrubbing);
  pool.free(first, MemoryFate::VerifiedZero);
  CHECK(pool.take(MemoryPool::Kv, 1, kOwner).front() != first);
}

TEST_CASE("extents: each pool conserves its own bytes, and no id is in both") {
  ExtentBook pools({.kv_bytes = 8 * kMiB, .swap_bytes = 5 * kMiB});
  pools.choose_size(kTestBlockBytes);
  CHECK(pools.free_extents(MemoryPool::Swap) == 2);

  const auto kv = pools.take(MemoryPool::Kv, 2, kOwner);
  const auto swap = pools.take(MemoryPool::Swap, 1, kOwner);

  CHECK(std::ranges::find(kv, swap.front()) == kv.end());
  CHECK(pools.free_extents() == 2);
  CHECK(pools.free_extents(MemoryPool::Swap) == 1);
  const auto bytes = pools.bytes_by_state(MemoryPool::Swap);
  CHECK(bytes[static_cast<unsigned>(ExtentState::Owned)] == 2 * kMiB);
  CHECK(bytes[static_cast<unsigned>(ExtentState::Free)] == 3 * kMiB);
  CHECK(pools.of_pool(MemoryPool::Swap, std::vector{kv[0], swap[0], kv[1]}) == swap);
  pools.check_conservation();
}

TEST_CASE("extents: a large swap capacity doubles the size until both pools are bounded") {
  ExtentBook pools({.kv_bytes = 64 * kMiB, .swap_bytes = 100 * kMiB}, 16);
  pools.choose_size(kTestBlockBytes);
  CHECK(pools.extent_size_bytes() == 8 * kMiB);
  CHECK(pools.capacity_extents() == 8);
  CHECK(pools.capacity_extents(MemoryPool::Swap) == 12);
}

TEST_CASE("extents: no extent becomes free without being scrubbed") {
  for (int from = 0; from < kExtentStateCount; ++from) {
    const auto state = static_cast<ExtentState>(from);
    CHECK(may_become(state, ExtentState::Free) == (state == ExtentState::Scrubbing));
  }
  CHECK_FALSE(may_become(ExtentState::Quarantined, ExtentState::Owned));
}

TEST_CASE("blocks: the last extent is charged only up to the quota") {
  const auto allowed =
      allow_blocks({.max_blocks = 20, .charged_others = 8, .wanted = 12, .blocks_per_extent = 8});
  REQUIRE(allowed);
  CHECK(allowed->extents == 2);
  CHECK(allowed->charged == 12);
}

TEST_CASE("blocks: a request for one block above the quota is refused") {
  const auto allowed =
      allow_blocks({.max_blocks = 20, .charged_others = 8, .wanted = 13, .blocks_per_extent = 8});
  REQUIRE_FALSE(allowed);
  CHECK(allowed.error().code == Errc::QuotaBlocks);
  CHECK(allowed.error().detail.contains(
      "hold 8 of at most 20 blocks, and 13 were asked for; end one,"));
  const auto first = allow_blocks({.max_blocks = 33, .wanted = 40, .blocks_per_extent = 8});
  REQUIRE_FALSE(first);
  CHECK(first.error().detail.contains("40 were asked for; ask for fewer, or raise --max-blocks"));
  const auto none = allow_blocks({.max_blocks = 8, .charged_others = 8, .blocks_per_extent = 8});
  REQUIRE_FALSE(none);
  CHECK(none.error().detail.contains("hold 8 of at most 8 blocks, and none is left"));
}
