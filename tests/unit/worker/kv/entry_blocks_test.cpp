// The states that the entries of a prefix index own: which leaves first, and with what.
#include <catch2/catch.hpp>

#include "worker/kv/prefix_index.hpp"
#include "worker/kv/window_blocks.hpp"

namespace leasehold {
namespace {

using Blocks = std::vector<BlockId>;

const TenantId kStatesOwner{"alice"};

BlockId state_block(std::uint32_t index, std::uint64_t extent = 1) {
  return {ExtentId{extent}, index};
}

/// A chain of three unused blocks, 0 to 2, whose first and last entries have states of two blocks.
struct ThreeEntries {
  ThreeEntries() {
    for (std::uint32_t i = 0; i < 3; ++i) {
      const std::vector<TokenId> tokens(4, static_cast<TokenId>(i));
      chain.push_back(
          *index.add(i == 0 ? PrefixId{} : chain.back(), {&kStatesOwner, tokens}, state_block(i)));
    }
    index.states().set(chain[0], {state_block(10), state_block(11)});
    index.states().set(chain[2], {state_block(12), state_block(13, 2)});
    index.release(chain);
  }

  PrefixIndex index;
  std::vector<PrefixId> chain;
};

}  // namespace

TEST_CASE("cached states: their blocks can be evicted, whether or not the entry is used") {
  ThreeEntries cached;
  CHECK(cached.index.unused() == 7);
  CHECK(cached.index.states().unused() == 4);
  cached.index.keep(cached.chain);
  CHECK(cached.index.unused() == 4);
}

TEST_CASE("cached states: a state leaves with its entry") {
  ThreeEntries cached;
  CHECK(cached.index.evict(1) == Blocks{state_block(12), state_block(13, 2), state_block(2)});
  CHECK(cached.index.states().unused() == 2);
  CHECK(cached.index.unused() == 4);
}

TEST_CASE("cached states: once no entry is unused, states of used ones leave, the oldest first") {
  ThreeEntries cached;
  cached.index.keep(cached.chain);
  CHECK(cached.index.evict(1) == Blocks{state_block(10), state_block(11)});
  CHECK_FALSE(cached.index.states().has(cached.chain[0]));
  CHECK(cached.index.states().has(cached.chain[2]));
  CHECK(cached.index.evict(5) == Blocks{state_block(12), state_block(13, 2)});
}

TEST_CASE("cached states: the least recently used ones leave when there are too many") {
  ThreeEntries cached;
  cached.index.states().set(cached.chain[0],
                            cached.index.states().take(cached.chain[0]));  // was used
  CHECK(cached.index.states().limit(4).empty());
  CHECK(cached.index.states().limit(3) == Blocks{state_block(12), state_block(13, 2)});
  CHECK(cached.index.states().has(cached.chain[0]));
}

TEST_CASE("cached states: a state leaves with the extent of any of its blocks") {
  ThreeEntries cached;
  CHECK(cached.index.unused_by_extent().at(ExtentId{2}) == 1);
  CHECK(cached.index.evict_extent(ExtentId{2}) == Blocks{state_block(12), state_block(13, 2)});
  CHECK(cached.index.size() == 3);
  CHECK(cached.index.unused_by_extent().at(ExtentId{1}) == 5);
}

namespace {

/// A chain of three unused blocks, 0 to 2, each with a window block 20 to 22. A sequence that went
/// on has left the first window block behind.
struct ThreeWindows : ThreeEntries {
  ThreeWindows() {
    for (std::uint32_t i = 0; i < 3; ++i) index.windows().set(chain[i], {state_block(20 + i)});
    index.windows().reference(chain);
    for (const PrefixId id : {chain[1], chain[2]}) index.windows().release(id);
    index.windows().release(chain[0], EntryBlocks::Turn::Early);
    index.states().take(chain[0]);
    index.states().take(chain[2]);
  }
};

}  // namespace

TEST_CASE("cached windows: what a sequence left behind leaves first, the rest with its entry") {
  ThreeWindows cached;
  CHECK(cached.index.unused() == 6);
  CHECK(cached.index.evict(1) == Blocks{state_block(20)});
  CHECK(cached.index.evict(1) == Blocks{state_block(22), state_block(2)});
  CHECK(cached.index.evict(5) == Blocks{state_block(21), state_block(1), state_block(0)});
  CHECK(cached.index.unused() == 0);
}

TEST_CASE("cached windows: those of used entries leave when no entry is unused, used ones do not") {
  ThreeWindows cached;
  cached.index.keep(cached.chain);
  cached.index.windows().reference(std::span(cached.chain).subspan(2));
  CHECK(cached.index.unused() == 2);
  CHECK(cached.index.windows().unused_of(cached.chain) == 2);
  CHECK(cached.index.evict(9) == Blocks{state_block(20), state_block(21)});
  CHECK(cached.index.windows().has(cached.chain[2]));
  CHECK(cached.index.evict_extent(ExtentId{1}).empty());
  cached.index.windows().release(cached.chain[2]);
  CHECK(cached.index.evict_extent(ExtentId{1}) == Blocks{state_block(22)});
}

TEST_CASE("cached windows: a chain is used up to where the next row finds its window") {
  ThreeWindows cached;
  const auto length = [&](std::uint32_t positions) {
    return length_with_windows(cached.chain, cached.index.windows(),
                               {.n_groups = 1, .positions = positions});
  };
  CHECK(length(17) == 3);
  CHECK(length(40) == 3);
  (void)cached.index.windows().take(cached.chain[1]);
  CHECK(length(17) == 3);
  CHECK(length(18) == 1);
  CHECK(length_with_windows(cached.chain, cached.index.windows(), {}) == 3);
  (void)cached.index.windows().take(cached.chain[0]);
  CHECK(length(40) == 0);
}

}  // namespace leasehold
