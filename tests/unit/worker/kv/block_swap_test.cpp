// The life of a sequence's blocks, and what moving them to swap and back does to both pools.
#include <catch2/catch.hpp>
#include <set>

#include "worker/kv/block_table.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kPositionsPerBlock = 4;
const TenantId kSwapOwner{"alice"};
const std::vector<TokenId> kSwapTokens{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
const OwnedText kSwapText{&kSwapOwner, kSwapTokens};

/// The two pools of a lease, and a sequence of ten committed positions in three blocks.
struct SwapPools {
  SwapPools() {
    pool.add_extent(ExtentId{1}, 8);
    swap.add_extent(ExtentId{2}, 4);
    REQUIRE(table.reserve_record(1, pool));
    REQUIRE(table.reserve(14, pool));  // one block more than the committed positions need
    table.commit(10);
  }
  std::vector<BlockCopy> swap_out() { return table.swap_out(pool, swap, index); }
  std::vector<BlockCopy> swap_in() {
    const auto chain = index.match(kSwapText, kPositionsPerBlock);
    index.take(chain, kSwapOwner, chain.size());
    return table.swap_in(chain, pool, swap, index);
  }

  BlockPool pool;
  BlockPool swap;
  PrefixIndex index;
  BlockTable table{kPositionsPerBlock};
};

}  // namespace

TEST_CASE("kv state: only the changes of the picture are allowed") {
  using enum KvState;
  const std::set<std::pair<KvState, KvState>> allowed{
      {Allocated, Active}, {Allocated, Freed},  {Active, Swapped},  {Active, Freed},
      {Swapped, Active},   {Swapped, Freed},    {Swapped, Spilled}, {Spilled, Returning},
      {Spilled, Freed},    {Returning, Active}, {Returning, Freed}};
  for (int from = 0; from < kKvStateCount; ++from) {
    for (int to = 0; to < kKvStateCount; ++to) {
      const std::pair change{static_cast<KvState>(from), static_cast<KvState>(to)};
      CAPTURE(name(change.first), name(change.second));
      CHECK(may_become(change.first, change.second) == allowed.contains(change));
    }
  }
}

TEST_CASE("block table: it is Allocated, then Active, Swapped, Active again, and Freed") {
  SwapPools pools;
  CHECK(BlockTable(kPositionsPerBlock).state() == KvState::Allocated);
  CHECK(pools.table.state() == KvState::Active);
  pools.swap_out();
  CHECK(pools.table.state() == KvState::Swapped);
  pools.swap_in();
  CHECK(pools.table.state() == KvState::Active);
  pools.table.free(pools.pool, pools.index);
  CHECK(pools.table.state() == KvState::Freed);
}

TEST_CASE(
    "block table: a spilled table has no block in either pool, and returns with its positions") {
  const bool is_filled = GENERATE(true, false);
  SwapPools pools;
  pools.swap_out();
  pools.table.spill(pools.swap);
  CHECK(pools.swap.held_blocks() == 0);
  CHECK(pools.pool.held_blocks() == 0);
  pools.table.begin_return({}, pools.pool, pools.index);
  CHECK(pools.table.state() == KvState::Returning);
  CHECK(pools.table.blocks().size() == 3);
  CHECK(pools.table.committed() == 10);
  pools.table.finish_return(is_filled);
  CHECK(pools.table.state() == KvState::Active);
  CHECK(pools.table.committed() == (is_filled ? 10u : 0u));
  pools.table.free(pools.pool, pools.index);
  CHECK(pools.pool.held_blocks() == 0);
}

TEST_CASE("block table: a swap-out copies the committed blocks and leaves the KV pool") {
  SwapPools pools;
  const std::vector<BlockId> blocks(pools.table.blocks().begin(), pools.table.blocks().end());
  const std::vector<BlockCopy> copies = pools.swap_out();
  REQUIRE(copies.size() == 3);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    CHECK(copies[i].from == blocks[i]);
    CHECK(copies[i].to == pools.table.swapped()[i]);
  }
  CHECK(pools.pool.held_blocks() == 0);
  CHECK(pools.swap.held_blocks() == 3);
  CHECK(pools.table.committed() == 10);
  pools.table.free_swapped(pools.swap);
  CHECK(pools.swap.held_blocks() == 0);
}

TEST_CASE("block table: a swap-in copies each block back in order and leaves the swap pool") {
  SwapPools pools;
  pools.swap_out();
  const std::vector<BlockId> swapped(pools.table.swapped().begin(), pools.table.swapped().end());
  const std::vector<BlockCopy> copies = pools.swap_in();
  REQUIRE(copies.size() == 3);
  for (std::size_t i = 0; i < copies.size(); ++i)
    CHECK(copies[i] == BlockCopy{.from = swapped[i], .to = pools.table.blocks()[i]});
  CHECK(pools.swap.held_blocks() == 0);
  CHECK(pools.pool.held_blocks() == 3);
  CHECK(pools.table.committed() == 10);
  REQUIRE(pools.table.reserve(14, pools.pool));
  pools.table.commit(14);
}

TEST_CASE("block table: what is still cached at a swap-in is not copied back") {
  SwapPools pools;
  pools.table.cache_full(kSwapText, pools.index);
  const std::vector<BlockId> blocks(pools.table.blocks().begin(), pools.table.blocks().end());
  REQUIRE(pools.swap_out().size() == 3);
  CHECK(pools.pool.held_blocks() == 2);  // cached, and not used
  CHECK(pools.index.unused() == 2);
  pools.pool.release(pools.index.evict(1).front());  // the second block
  const std::vector<BlockCopy> copies = pools.swap_in();
  REQUIRE(copies.size() == 2);
  CHECK(pools.table.blocks()[0] == blocks[0]);
  CHECK(copies[0].to == pools.table.blocks()[1]);
  CHECK(pools.table.cached().size() == 1);
  CHECK(pools.table.committed() == 10);
  CHECK(pools.swap.held_blocks() == 0);
}

TEST_CASE("block table: text that others cached meanwhile counts as committed after a swap-in") {
  SwapPools pools;
  pools.table.swap_out(pools.pool, pools.swap, pools.index);
  BlockTable other(kPositionsPerBlock);
  std::vector<TokenId> longer = kSwapTokens;
  longer.resize(20, 3);
  REQUIRE(other.reserve(16, pools.pool));
  other.commit(16);
  other.cache_full({&kSwapOwner, longer}, pools.index);
  const auto chain = pools.index.match({&kSwapOwner, longer}, kPositionsPerBlock);
  REQUIRE(chain.size() == 4);
  pools.index.take(chain, kSwapOwner, chain.size());
  CHECK(pools.table.swap_in(chain, pools.pool, pools.swap, pools.index).empty());
  CHECK(pools.table.committed() == 16);
  CHECK(pools.swap.held_blocks() == 0);
}

}  // namespace leasehold
