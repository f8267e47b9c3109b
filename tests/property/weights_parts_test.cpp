/// A part of the weights is revoked during a forward pass. It is restored alone, and every request
/// continues with the same text.
#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "tests/property/four_tenants.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold::testing {
namespace {

using Catch::Matchers::Contains;
using Tokens = FourTenants::Tokens;

RigOptions scoped(WeightsScope scope, std::uint32_t threads) {
  return {.threads = threads, .weights_scope = scope};
}

std::vector<LeaseId> part_leases(const EngineRig& rig) {
  std::vector<LeaseId> leases;
  for (std::size_t part = 0; part < rig.weights_plan().parts.size(); ++part) {
    leases.push_back(rig.engine_lease(part));
  }
  return leases;
}

/// Revokes `part` at unit `k` of the mixed step.
void revoke_part(FourTenants& scenario, const FourTenants::Undisturbed& calm, std::size_t part,
                 std::size_t k) {
  const std::string part_name = scenario.rig.weights_plan().parts[part].name;
  scenario.begin();
  const Tokens before = scenario.tokens();
  std::vector<LeaseId> leases = part_leases(scenario.rig);
  const Result<StepReport> report =
      scenario.watched_step(k, [&] { scenario.rig.revoke(leases[part]); });
  scenario.check_units_after_act(~SequenceMask{0});
  const bool failed =
      k + 1 < calm.units.size();  // the last unit is the commit, which has polled already
  REQUIRE(report.has_value() != failed);
  if (failed) {
    REQUIRE(report.error().code == Errc::EngineDecodeFailed);
    REQUIRE_THAT(report.error().detail, Contains("part " + part_name + " of "));
    REQUIRE(scenario.tokens() == before);
  }
  const std::uint64_t units = scenario.rig.units_run();
  const Error missing = scenario.rig.step().error();
  REQUIRE(missing.code == Errc::WeightsLoading);
  REQUIRE_THAT(missing.detail, Contains("part " + part_name + " of "));
  REQUIRE(scenario.rig.units_run() == units);

  REQUIRE(scenario.rig.restore_weights() == 1);
  REQUIRE(scenario.rig.engine_lease(part) != leases[part]);
  leases[part] = scenario.rig.engine_lease(part);
  REQUIRE(part_leases(scenario.rig) == leases);
  scenario.rig.run();
  REQUIRE(scenario.rig.early_completions().empty());
  REQUIRE(scenario.tokens() == calm.at_end);
  scenario.end();
}

void take_parts_back(WeightsScope scope, std::uint32_t threads) {
  const std::uint64_t seed = test_seed(20261120);
  SeededRandom random(seed);
  FourTenants scenario(scoped(scope, threads));
  const FourTenants::Undisturbed calm = scenario.run_undisturbed();
  const std::size_t parts = scenario.rig.weights_plan().parts.size();
  const std::uint32_t layers = scenario.rig.config().n_layers;
  REQUIRE(parts >= (scope == WeightsScope::Layer ? layers + 2 : 9 * layers + 2));
  for (std::size_t round = 0; round < parts; ++round) {
    // Each part once, at some unit, including the first and the last unit.
    const std::size_t k = round == 0   ? 0
                          : round == 1 ? calm.units.size() - 1
                                       : static_cast<std::size_t>(random.below(calm.units.size()));
    INFO("SEED=" << seed << " " << name(scope) << " threads " << threads << " part " << round
                 << " unit " << k);
    revoke_part(scenario, calm, round, k);
  }
}

}  // namespace

TEST_CASE("weights in parts: the text equals that of weights in one part") {
  FourTenants whole(scoped(WeightsScope::Model, 1));
  const Tokens text = whole.run_undisturbed().at_end;
  for (const WeightsScope scope : {WeightsScope::Layer, WeightsScope::Tensor}) {
    FourTenants scenario(scoped(scope, 2));
    CHECK(scenario.run_undisturbed().at_end == text);
  }
}

TEST_CASE(
    "weights in parts: a part revoked in a forward pass is restored alone, and texts continue") {
  const std::uint32_t threads = GENERATE(1u, 3u);
  take_parts_back(GENERATE(WeightsScope::Layer, WeightsScope::Tensor), threads);
}

TEST_CASE("weights in parts: many parts revoked at once are restored, and the others stay mapped") {
  FourTenants scenario(scoped(WeightsScope::Tensor, 2));
  const FourTenants::Undisturbed calm = scenario.run_undisturbed();
  scenario.begin();
  std::vector<LeaseId> leases = part_leases(scenario.rig);
  const auto failed = scenario.watched_step(calm.units.size() / 2, [&] {
    for (const std::size_t part : {0, 17, 29}) scenario.rig.revoke(leases[part]);
  });
  REQUIRE(failed.error().code == Errc::EngineDecodeFailed);
  REQUIRE(scenario.rig.restore_weights() == 3);
  for (const std::size_t part : {0, 17, 29}) leases[part] = scenario.rig.engine_lease(part);
  REQUIRE(part_leases(scenario.rig) == leases);
  scenario.rig.run();
  REQUIRE(scenario.tokens() == calm.at_end);
}

TEST_CASE("weights in parts: a fenced part, and only that, is unmapped during a step") {
  EngineRig rig(scoped(WeightsScope::Layer, 1));
  const LeaseId gone = rig.engine_lease(2);
  rig.revoke(gone);
  rig.fence(gone);
  CHECK(rig.engine().unmap_lease(gone));
  CHECK_FALSE(rig.engine().unmap_lease(gone));
  rig.engine().drop_lease(gone);
  CHECK(rig.step().error().code == Errc::WeightsLoading);
  CHECK(rig.restore_weights() == 1);
  const LeaseId tenant = rig.grant("t");
  REQUIRE(rig.submit(rig.request("t", tenant, "r", rig.encode("Lily"), 3)));
  rig.run();
  CHECK(rig.outcome("r").tokens.size() == 3);
}

}  // namespace leasehold::testing
