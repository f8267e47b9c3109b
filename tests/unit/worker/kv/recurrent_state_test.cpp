// Which copy of a recurrent state a step reads and writes, and how its blocks move with a table.
#include "worker/kv/recurrent_state.hpp"

#include <catch2/catch.hpp>

#include "worker/kv/block_table.hpp"

namespace leasehold {
namespace {

using Blocks = std::vector<BlockId>;

Blocks list(std::span<const BlockId> blocks) {
  return {blocks.begin(), blocks.end()};
}

/// The two pools of a lease, and a sequence of six committed positions with a state of two blocks.
struct StatePools {
  StatePools() {
    pool.add_extent(ExtentId{1}, 10);
    swap.add_extent(ExtentId{2}, 4);
    REQUIRE(table.reserve_state({}, pool));
    REQUIRE(table.reserve(6, pool));
    table.commit(6);
  }
  const RecurrentState& state() const { return table.recurrent(); }

  BlockPool pool;
  BlockPool swap;
  PrefixIndex index;
  BlockTable table{4, 2};
};

}  // namespace

TEST_CASE("recurrent state: nothing is read before the first commit") {
  BlockPool pool;
  pool.add_extent(ExtentId{1}, 4);
  RecurrentState state(2);
  REQUIRE(state.reserve(pool));
  CHECK(state.from().empty());
  CHECK(state.to().size() == 2);
  CHECK(pool.free_blocks() == 0);
}

TEST_CASE("recurrent state: a step reads the copy that the last committed step wrote") {
  StatePools pools;
  const Blocks written = list(pools.state().to());
  CHECK(list(pools.state().from()) != written);
  pools.table.commit(7);
  CHECK(list(pools.state().from()) == written);
  CHECK(list(pools.state().to()) != written);
}

TEST_CASE("recurrent state: a step that commits no row leaves both copies as they are") {
  StatePools pools;
  const Blocks read = list(pools.state().from());
  pools.table.commit(6);
  CHECK(list(pools.state().from()) == read);
}

TEST_CASE("recurrent state: both copies are reserved, or none") {
  BlockPool pool;
  pool.add_extent(ExtentId{1}, 3);
  RecurrentState state(2);
  CHECK(state.reserve(pool).error().code == Errc::OutOfBlocks);
  CHECK(pool.free_blocks() == 3);
}

TEST_CASE("recurrent state: the valid copy moves to swap and back behind the positions") {
  StatePools pools;
  const Blocks read = list(pools.state().from());
  const std::vector<BlockCopy> out = pools.table.swap_out(pools.pool, pools.swap, pools.index);
  REQUIRE(out.size() == 4);
  CHECK(Blocks{out[2].from, out[3].from} == read);
  CHECK(pools.pool.held_blocks() == 0);
  const std::vector<BlockCopy> in = pools.table.swap_in({}, pools.pool, pools.swap, pools.index);
  REQUIRE(in.size() == 4);
  CHECK(Blocks{in[2].from, in[3].from} == Blocks{out[2].to, out[3].to});
  CHECK(Blocks{in[2].to, in[3].to} == list(pools.state().from()));
  CHECK(pools.state().to().size() == 2);
  CHECK(pools.swap.held_blocks() == 0);
}

TEST_CASE("recurrent state: a table that is not filled from the file starts from the zero state") {
  const bool is_filled = GENERATE(true, false);
  StatePools pools;
  pools.table.swap_out(pools.pool, pools.swap, pools.index);
  pools.table.spill(pools.swap);
  pools.table.begin_return({}, pools.pool, pools.index);
  CHECK(pools.table.moved().size() == 4);
  pools.table.finish_return(is_filled);
  CHECK(pools.table.committed() == (is_filled ? 6u : 0u));
  CHECK(pools.state().from().empty() != is_filled);
}

TEST_CASE("recurrent state: a table that moves to another lease takes the valid copy with it") {
  StatePools pools;
  BlockPool other;
  other.add_extent(ExtentId{3}, pools.table.own_blocks());
  auto [moved, copies] = pools.table.copy_to(other);
  CHECK(other.free_blocks() == 0);
  REQUIRE(copies.size() == 4);
  CHECK(Blocks{copies[2].from, copies[3].from} == list(pools.state().from()));
  CHECK(Blocks{copies[2].to, copies[3].to} == list(moved.recurrent().from()));
  pools.table.free(pools.pool, pools.index);
  CHECK(pools.pool.held_blocks() == 0);
}

namespace {

const TenantId kStateOwner{"alice"};
const std::vector<TokenId> kStateTokens{0, 1, 2, 3, 4, 5, 6};  // six positions are committed
const OwnedText kStateText{&kStateOwner, kStateTokens};

}  // namespace

TEST_CASE("recurrent state: a text that ends leaves its state at its last committed position") {
  StatePools pools;
  const Blocks read = list(pools.state().from());
  const BlockId last = pools.table.blocks()[1];
  pools.table.cache_all(kStateText, pools.index);
  pools.table.free(pools.pool, pools.index);
  CHECK(pools.pool.held_blocks() == 4);  // two of positions, one copy of the state
  CHECK(pools.index.unused() == 4);
  const std::vector<PrefixId> chain = pools.index.match(kStateText, 4);
  REQUIRE(chain.size() == 1);
  CHECK_FALSE(pools.index.states().has(chain[0]));
  const auto end = pools.index.take_tail(
      chain[0], {&kStateOwner, std::span(kStateTokens).subspan(4, 2)}, /*needs_state=*/true);
  REQUIRE(end);
  CHECK(end->block == last);
  CHECK(end->positions == 2);
  CHECK(end->state == read);
  CHECK(pools.index.unused() == 1);
}

TEST_CASE("recurrent state: a text of full blocks leaves its state with the last of them") {
  StatePools pools;
  REQUIRE(pools.table.reserve(8, pools.pool));
  pools.table.commit(8);
  const Blocks read = list(pools.state().from());
  const std::vector<TokenId> tokens{0, 1, 2, 3, 4, 5, 6, 7, 8};
  const OwnedText text{&kStateOwner, tokens};
  pools.table.cache_all(text, pools.index);
  pools.table.free(pools.pool, pools.index);
  const std::vector<PrefixId> chain = pools.index.match(text, 4);
  REQUIRE(chain.size() == 2);
  CHECK_FALSE(pools.index.states().has(chain[0]));
  CHECK(pools.index.states().take(chain[1]) == read);
}

TEST_CASE("recurrent state: an end whose text goes on differently has no state for the caller") {
  StatePools pools;
  pools.table.cache_all(kStateText, pools.index);
  pools.table.free(pools.pool, pools.index);
  const PrefixId first = pools.index.match(kStateText, 4).front();
  const std::vector<TokenId> other{4, 9, 9};
  CHECK_FALSE(pools.index.find_tail(first, {&kStateOwner, std::span(other).first(1)}, true));
  CHECK(pools.index.find_tail(first, {&kStateOwner, std::span(other).first(1)}, false));
  CHECK_FALSE(pools.index.find_tail(first, {&kStateOwner, other}, true));
}

TEST_CASE("recurrent state: a sequence that starts with a cached state takes one more copy") {
  StatePools pools;
  pools.table.cache_all(kStateText, pools.index);
  pools.table.free(pools.pool, pools.index);
  const PrefixId first = pools.index.match(kStateText, 4).front();
  const auto end =
      pools.index.take_tail(first, {&kStateOwner, std::span(kStateTokens).subspan(4, 2)}, true);
  BlockTable table(4, 2);
  table.start_with({}, pools.index);
  table.continue_in(end->block, 2);
  REQUIRE(table.reserve_state(end->state, pools.pool));
  CHECK(list(table.recurrent().from()) == end->state);
  CHECK(table.recurrent().to().size() == 2);
}

}  // namespace leasehold
