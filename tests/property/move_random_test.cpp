/// Random moves of requests between leases of a tenant, with revocations and cancels in between.
#include <algorithm>
#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "tests/property/tight_workload.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold::testing {

TEST_CASE("move: random moves, revocations and cancels change no text and leak no block") {
  const std::uint64_t seed = test_seed(11);
  CAPTURE(seed);
  SeededRandom random(seed);
  UnitClock clock;
  const std::vector<TightAnswer> alone = tight_answers_alone(bundled_model_path());
  TightRig rig(TightRig::blocks(40, 6), bundled_model_path(), &clock,
               BackendUnderTest{.threads = 0});
  clock.drive(rig.clock());
  std::vector<std::size_t> kinds;  // that need no damaged model
  for (std::size_t i = 0; i < tight_kinds().size(); ++i)
    if (!tight_kinds()[i].is_poisoned) kinds.push_back(i);
  std::vector<LeaseId> leases{rig.grant("t"), rig.grant("t")};
  struct Open {
    std::size_t kind = 0;
    bool may_be_cut = false;
  };
  std::map<std::string, Open> open;
  int ids = 0, moved = 0, refused = 0, completed = 0, cut = 0;
  const auto some_lease = [&]() -> LeaseId& { return leases[random.below(leases.size())]; };
  const auto some_open = [&] {
    return std::next(open.begin(), static_cast<std::ptrdiff_t>(random.below(open.size())));
  };
  for (int i = 0; i < 2'500; ++i) {
    const auto what = random.below(16);
    if (what < 2 && open.size() < 6) {
      const std::string id = "r" + std::to_string(ids++);
      const std::size_t kind = kinds[random.below(kinds.size())];
      if (rig.submit(rig.request_of(tight_kinds()[kind], "t", some_lease(), id)))
        open[id] = {.kind = kind};
    } else if (what < 6 && !open.empty()) {
      const LeaseId to = some_lease();
      const auto target = some_open();
      const Sequence* sequence = rig.sequence(target->first);
      const bool strikes = random.below(12) == 0;
      const LeaseId struck =
          strikes && sequence != nullptr && random.below(2) == 0 ? sequence->request.lease : to;
      if (strikes) {
        clock.act_at_copy(clock.units(LaunchSite::BlockCopy) + static_cast<int>(random.below(2)),
                          [&, struck] { rig.revoke(struck); });
      }
      rig.engine().move(RequestId{target->first}, to, rig.clock().now()) ? ++moved : ++refused;
      clock.act_at_copy(-1, {});
      if (rig.table().word_of(struck).state() != LeaseState::Live)
        for (auto& [id, each] : open) {
          const Sequence* running = rig.sequence(id);
          const bool waits = running == nullptr;
          if (waits || running->request.lease == struck) each.may_be_cut = true;
        }
    } else if (what == 6 && !open.empty() && random.below(3) == 0) {
      const auto target = some_open();
      target->second.may_be_cut = true;
      (void)rig.engine().cancel(RequestId{target->first});
    } else if (what == 7 && random.below(4) == 0) {
      LeaseId& lease = some_lease();
      for (auto& [id, each] : open) {
        const Sequence* running = rig.sequence(id);
        if (running == nullptr || running->request.lease == lease) each.may_be_cut = true;
      }
      rig.revoke(lease);
    } else {
      rig.step_without_growth();
    }
    for (LeaseId& lease : leases) {
      if (rig.table().word_of(lease).state() == LeaseState::Live) continue;
      rig.step_without_growth();  // ends what ran there
      rig.drop(lease);
      lease = rig.grant("t");
    }
    std::erase_if(open, [&](const auto& entry) {
      const RequestOutcome& outcome = rig.outcome(entry.first);
      if (outcome.completions.empty() && outcome.rejections.empty()) return false;
      REQUIRE(outcome.completions.size() + outcome.rejections.size() == 1);
      for (std::uint32_t at = 0; at < outcome.positions.size(); ++at)
        REQUIRE(outcome.positions[at] == at);
      const std::vector<TokenId>& expected = alone[entry.second.kind].tokens;
      REQUIRE(outcome.tokens.size() <= expected.size());
      REQUIRE(std::equal(outcome.tokens.begin(), outcome.tokens.end(), expected.begin()));
      const bool is_whole = outcome.tokens.size() == expected.size();
      if (!is_whole) REQUIRE(entry.second.may_be_cut);
      is_whole ? ++completed : ++cut;
      return true;
    });
  }
  rig.run();
  for (const auto& [lease, tenancy] : rig.engine().scheduler().tenancies()) {
    CHECK(tenancy.running == 0);
    CHECK(tenancy.pool.held_blocks() == tenancy.prefixes.unused());
  }
  CHECK(moved > 100);
  CHECK(refused > 50);
  CHECK(completed > 50);
  CHECK(cut > 10);
}

}  // namespace leasehold::testing
