#include "tools/checks/soak/chaos.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace leasehold::soak;

TEST_CASE("soak chaos: one seed names one row of deeds, another seed another") {
  Chaos first(7), again(7), other(8);
  int same = 0, different = 0;
  for (int i = 0; i < 100; ++i) {
    const Deed deed = first.next(), repeated = again.next(), foreign = other.next();
    same += deed.kind == repeated.kind && deed.which == repeated.which &&
            deed.after_tokens == repeated.after_tokens && deed.stands_for == repeated.stands_for;
    different += deed.which != foreign.which;
  }
  CHECK(same == 100);
  CHECK(different > 90);
}

TEST_CASE("soak chaos: every kind of deed comes up, and more than half of them kill") {
  Chaos chaos(1);
  std::set<DeedKind> kinds;
  int kills = 0;
  for (int i = 0; i < 1000; ++i) {
    const Deed deed = chaos.next();
    kinds.insert(deed.kind);
    kills += is_kill(deed.kind);
    CHECK(deed.stands_for >= 1);
  }
  CHECK(kinds.size() == kDeedKindCount);
  CHECK(kills > 500);
}
