/// Requests under a tenant's fenced lease get a typed error, under the engine's they wait; no unit
/// runs for either.
#include <catch2/catch.hpp>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

std::vector<TokenId> tokens_alone(const std::string& text) {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  REQUIRE(rig.submit(rig.request("t", lease, "r", rig.encode(text), 6)));
  rig.run();
  return rig.outcome("r").tokens;
}

}  // namespace

TEST_CASE("fence: requests under the engine's fenced lease wait, and no unit runs") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  const PromptRequest first = rig.request("t", lease, "r", rig.encode(prompts()[0]), 6);
  const PromptRequest second = rig.request("t", lease, "s", rig.encode(prompts()[1]), 6);
  REQUIRE(rig.submit(first));
  REQUIRE(rig.step());
  REQUIRE_FALSE(rig.engine().weights().first_revoked_part());

  rig.revoke(rig.engine_lease(), RevokeReason::ModelUnloaded);
  const std::uint64_t units = rig.units_run();
  REQUIRE(rig.submit(second));
  for (const bool fenced : {false, true}) {
    if (fenced) rig.fence(rig.engine_lease());
    CAPTURE(fenced);
    REQUIRE(rig.engine().weights().first_revoked_part());
    REQUIRE(rig.step().error().code == Errc::WeightsLoading);
    REQUIRE(rig.units_run() == units);
  }

  rig.restore_weights();
  REQUIRE_FALSE(rig.engine().weights().first_revoked_part());
  rig.run();
  REQUIRE(rig.outcome("r").tokens == tokens_alone(prompts()[0]));
  REQUIRE(rig.outcome("s").tokens == tokens_alone(prompts()[1]));
}

TEST_CASE("fence: requests under a tenant's fenced lease get a typed error, and others run") {
  UnitWatch watch;
  EngineRig rig({.probe = &watch});
  const LeaseId dead = rig.grant("t");
  const LeaseId other = rig.grant("u");
  REQUIRE(rig.submit(rig.request("t", dead, "r", rig.encode(prompts()[0]), 6)));
  REQUIRE(rig.submit(rig.request("u", other, "s", rig.encode(prompts()[1]), 6)));
  REQUIRE(rig.step());

  const PromptRequest late = rig.request("t", dead, "late", rig.encode(prompts()[2]), 6);
  rig.revoke(dead);
  REQUIRE(rig.submit(late).error().code == Errc::LeaseRevoked);
  rig.fence(dead);
  REQUIRE(rig.submit(late).error().code == Errc::LeaseFenced);

  watch.start();
  REQUIRE(rig.step());
  for (const WatchedUnit& unit : watch.units()) REQUIRE(unit.live == 1);  // only the other one
  rig.run();
  REQUIRE(rig.submit(late).error().code == Errc::LeaseFenced);
  REQUIRE(rig.outcome("r").tokens.size() == 1);
  REQUIRE(rig.completion("r").reason == CompletionReason::Revoked);
  REQUIRE(rig.completion("r").revocation->lease == dead);
  REQUIRE(rig.outcome("s").tokens == tokens_alone(prompts()[1]));

  PromptRequest again = late;
  again.lease = rig.grant("t");
  REQUIRE(rig.submit(again));
  rig.run();
  REQUIRE(rig.outcome("late").tokens == tokens_alone(prompts()[2]));
}

TEST_CASE("fence: no unit runs for the only tenant's fenced lease") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  REQUIRE(rig.submit(rig.request("t", lease, "r", rig.encode(prompts()[0]), 6)));
  REQUIRE(rig.step());
  const std::uint64_t units = rig.units_run();
  rig.revoke(lease);
  const Result<StepReport> report = rig.step();
  REQUIRE(report);
  REQUIRE_FALSE(report->ran);
  REQUIRE(rig.units_run() == units);
  REQUIRE(rig.outcome("r").completions.size() == 1);
}

}  // namespace leasehold::testing
