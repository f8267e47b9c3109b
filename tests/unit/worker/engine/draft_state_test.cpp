// The copies of a draft's recurrent state: which one a pass reads and writes.
#include "worker/engine/propose/draft_state.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <set>
#include <vector>

#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {
namespace {

/// A state of one block per copy.
class OneBlock {
 public:
  DraftState& operator*() { return state_; }
  DraftState* operator->() { return &state_; }
  /// The copy that the next pass reads; nothing for the zero state.
  std::optional<std::ptrdiff_t> from() {
    const auto from = state_.table().from;
    if (from.empty()) return std::nullopt;
    return index_of(from[0]);
  }
  std::ptrdiff_t to() { return index_of(state_.table().to[0]); }

 private:
  std::vector<Leased<std::byte>> blocks() {
    const Leased<std::byte> base = mapping_.writable_base();
    return {base, base + 1, base + 2};
  }
  std::ptrdiff_t index_of(Leased<const std::byte> block) {
    const auto all = blocks();
    const std::vector<Leased<const std::byte>> read(all.begin(), all.end());
    return std::ranges::find(read, block) - read.begin();
  }

  MemoryObject memory_ =
      required(MemoryObject::create({.name = "state", .size_bytes = 4096, .final_seals = false}));
  LeasedMapping mapping_ = required(LeasedMapping::map(memory_.fd(), 4096, MapAccess::ReadWrite));
  DraftState state_{blocks()};
};

}  // namespace

TEST_CASE("draft state: a pass writes neither the copy that it reads nor that of the text") {
  OneBlock state;
  REQUIRE(state->start(9) == 0u);
  CHECK_FALSE(state.from());
  const std::ptrdiff_t of_text = state.to();
  state->advance(10, true);
  CHECK(state.from() == of_text);
  std::set<std::ptrdiff_t> written;
  for (std::size_t proposal = 1; proposal < 6; ++proposal) {
    CHECK(state.to() != of_text);
    CHECK(state.to() != state.from());
    written.insert(state.to());
    state->advance(10 + proposal, false);
  }
  CHECK(written.size() == 2);
  REQUIRE(state->start(12) == 10u);  // two of the proposals are right
  CHECK(state.from() == of_text);
}

TEST_CASE("draft state: the latest state is kept if every token that it read is the text's") {
  OneBlock state;
  REQUIRE(state->start(0) == 0u);
  state->advance(4, true);
  state->advance(5, false);
  state->advance(6, false);
  const std::optional<std::ptrdiff_t> latest = state.from();
  REQUIRE(state->start(6) == 6u);
  CHECK(state.from() == latest);
  state->advance(9, false);
  REQUIRE(state->start(8) == 6u);
  REQUIRE(state->start(6) == 6u);
}

TEST_CASE("draft state: a text that does not grow has no copy to start from") {
  OneBlock state;
  REQUIRE(state->start(3) == 0u);
  state->advance(4, true);
  CHECK_FALSE(state->start(3));
  CHECK_FALSE(state->start(3));
  CHECK(state->start(4) == 4u);
  state->reset();
  CHECK(state->start(3) == 0u);
  CHECK_FALSE(state.from());
}

TEST_CASE("draft state: without a recurrent state every position is one to start from") {
  DraftState none{{}};
  none.advance(7, false);
  CHECK(none.start(5) == 5u);
  CHECK(none.blocks().empty());
  CHECK(none.table().to.empty());
}

}  // namespace leasehold::testing
