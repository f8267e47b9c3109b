#include "worker/kv/block_table.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

BlockPool pool_of(std::uint32_t blocks) {
  BlockPool pool;
  pool.add_extent(ExtentId{1}, blocks);
  return pool;
}

}  // namespace

TEST_CASE(
    "block table: reserve takes one block for every sixteen positions, and only when needed") {
  BlockPool pool = pool_of(8);
  BlockTable table(16);
  for (const auto& [positions, blocks] : {std::pair{1u, 1u}, {16u, 1u}, {17u, 2u}, {33u, 3u}}) {
    CAPTURE(positions);
    REQUIRE(table.reserve(positions, pool));
    REQUIRE(table.blocks().size() == blocks);
  }
  REQUIRE(table.reserve(5, pool));
  REQUIRE(table.blocks().size() == 3);
}

TEST_CASE("block table: reserve takes all blocks or none, and reports how many are missing") {
  BlockPool pool = pool_of(3);
  BlockTable table(16);
  REQUIRE(table.reserve(16, pool));
  const Result<void> reserved = table.reserve(64, pool);
  REQUIRE(reserved.error().code == Errc::OutOfBlocks);
  REQUIRE(reserved.error().detail == "3 more KV blocks are needed, and 2 of 3 are free");
  REQUIRE(table.blocks().size() == 1);
  REQUIRE(pool.free_blocks() == 2);
}

TEST_CASE("block table: free gives back the blocks of the record with all others") {
  BlockPool pool = pool_of(4);
  BlockTable table(16);
  REQUIRE(table.reserve_record(2, pool));
  REQUIRE(table.reserve(20, pool));
  REQUIRE(table.record_blocks().size() == 2);
  table.commit(20);
  REQUIRE(table.committed() == 20);
  REQUIRE(pool.free_blocks() == 0);
  PrefixIndex index;
  table.free(pool, index);
  REQUIRE(pool.free_blocks() == 4);
}

namespace {

/// A sequence of `positions` committed positions.
BlockTable committed_table(std::uint32_t positions, BlockPool& pool) {
  BlockTable table(4);
  REQUIRE(table.reserve(positions, pool));
  table.commit(positions);
  return table;
}

const TenantId kOwner{"alice"};
const std::vector<TokenId> kTenTokens{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
const OwnedText kText{&kOwner, kTenTokens};

}  // namespace

TEST_CASE("block table: full committed blocks stay in the index, and the others are free") {
  BlockPool pool = pool_of(8);
  PrefixIndex index;
  BlockTable table = committed_table(10, pool);
  table.cache_full(kText, index);
  const std::vector<BlockId> blocks{table.blocks().begin(), table.blocks().end()};
  REQUIRE(table.cached().size() == 2);
  CHECK(index.unused() == 0);  // it is running
  table.free(pool, index);
  CHECK(index.unused() == 2);
  CHECK(pool.held_blocks() == 2);

  const auto chain = index.match(kText, 4);
  index.take(chain, kOwner, 2);
  BlockTable next(4);
  next.start_with(chain, index);
  CHECK(next.committed() == 8);
  REQUIRE(next.reserve(10, pool));
  CHECK(next.blocks()[0] == blocks[0]);
  CHECK(next.blocks()[1] == blocks[1]);
  CHECK(pool.held_blocks() == 3);
  CHECK(index.evict(9).empty());
  next.free(pool, index);
  CHECK(pool.held_blocks() == 2);
}

TEST_CASE("block table: of two sequences with one text, the blocks of the first stay") {
  BlockPool pool = pool_of(8);
  PrefixIndex index;
  BlockTable first = committed_table(10, pool);
  BlockTable second = committed_table(10, pool);
  first.cache_full(kText, index);
  second.cache_full(kText, index);
  CHECK(second.cached().empty());
  const BlockId kept = first.blocks()[0];
  const bool first_ends_first = GENERATE(true, false);
  for (BlockTable* table :
       {first_ends_first ? &first : &second, first_ends_first ? &second : &first}) {
    table->cache_all(kText, index);
    table->free(pool, index);
  }
  CHECK(pool.held_blocks() == 2);
  CHECK(index.unused() == 2);
  CHECK(index.block(index.match(kText, 4)[0]) == kept);
}

}  // namespace leasehold
