#include "tests/checks/soak/round.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace leasehold;
using namespace leasehold::runner;
using soak::kChaos;

TEST_CASE("soak chaos: a seed determines the sequence of actions") {
  SeededRandom first(7), again(7), other(8);
  int same = 0, different = 0;
  for (int i = 0; i < 100; ++i) {
    const ScriptAction action = next_action(kChaos, first), repeated = next_action(kChaos, again),
                       foreign = next_action(kChaos, other);
    same += action.kind == repeated.kind && action.which == repeated.which &&
            action.after_tokens == repeated.after_tokens &&
            action.stop_actions == repeated.stop_actions;
    different += action.which != foreign.which;
  }
  CHECK(same == 100);
  CHECK(different > 90);
}

TEST_CASE("soak chaos: every kind of action occurs, and more than half are kills") {
  SeededRandom random(1);
  std::set<ActionKind> kinds;
  int kills = 0;
  for (int i = 0; i < 1000; ++i) {
    const ScriptAction action = next_action(kChaos, random);
    kinds.insert(action.kind);
    kills += is_kill(action.kind);
    CHECK(action.stop_actions >= 1);
  }
  CHECK(kinds.size() == kChaos.shares.size());
  CHECK(kills > 500);
}
