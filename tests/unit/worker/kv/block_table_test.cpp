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
  table.free(pool);
  REQUIRE(pool.free_blocks() == 4);
}

}  // namespace leasehold
