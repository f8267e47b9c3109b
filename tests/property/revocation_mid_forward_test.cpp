/// A lease word stored during a forward pass is obeyed before the next unit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <utility>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

using Tokens = FourTenants::Tokens;
using Undisturbed = FourTenants::Undisturbed;

/// The units to revoke at: every unit on the CPU backend. The reference backend has thousands of
/// units in a step, and the fake driver is slow; for these, the first unit of every launch site and
/// the last two units.
std::vector<std::size_t> moments(const Undisturbed& calm, BackendUnderTest backend) {
  std::vector<std::size_t> at;
  std::set<LaunchSite> seen;
  for (std::size_t k = 0; k < calm.units.size(); ++k) {
    const bool first = seen.insert(calm.units[k].site).second;
    const bool last = k + 2 >= calm.units.size();
    const bool every = backend.threads > 0 && !backend.is_cuda();
    if (every || first || last) at.push_back(k);
  }
  return at;
}

void check_victim(FourTenants& scenario, std::uint32_t victim, bool discarded) {
  const RequestOutcome& outcome = scenario.outcome(victim);
  REQUIRE(outcome.completions.size() == 1);
  const Completed& end = outcome.completions[0];
  REQUIRE(end.reason == CompletionReason::Revoked);
  REQUIRE(end.revocation.has_value());
  REQUIRE(end.revocation->lease == scenario.lease(victim));
  REQUIRE(end.revocation->reason == RevokeReason::Operator);
  REQUIRE(end.emitted_tokens == outcome.tokens.size());
  const std::vector<bool> early = scenario.rig.early_completions();
  REQUIRE(early.size() == (discarded ? 1 : 0));
  if (discarded) REQUIRE(early[0]);
}

void flip_tenant(FourTenants& scenario, const Undisturbed& calm, std::uint32_t victim,
                 std::size_t k) {
  scenario.begin();
  const Tokens before = scenario.tokens();
  const SequenceMask victims_row = scenario.mask_of(victim);
  REQUIRE(scenario.watched_step(k, [&] { scenario.rig.revoke(scenario.lease(victim)); }));
  scenario.check_units_after_act(victims_row);

  // The last unit is the commit: it has polled already, so the token is emitted.
  const bool discarded = k + 1 < calm.units.size();
  Tokens expected = calm.after_step;
  if (discarded) expected[victim] = before[victim];
  REQUIRE(scenario.tokens() == expected);

  scenario.rig.run();
  check_victim(scenario, victim, discarded);
  Tokens at_end = calm.at_end;
  at_end[victim] = expected[victim];
  REQUIRE(scenario.tokens() == at_end);
  scenario.end();
}

/// The state that a failed step must not change.
struct SequenceSnapshot {
  std::uint32_t committed;
  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;
  std::vector<std::byte> record;
  bool operator==(const SequenceSnapshot&) const = default;
};

std::map<std::string, SequenceSnapshot> snapshots(FourTenants& scenario) {
  std::map<std::string, SequenceSnapshot> all;
  for (std::uint32_t t = 0; t < FourTenants::kTenants; ++t) {
    const Sequence* sequence = scenario.rig.sequence(scenario.request_id(t));
    if (sequence == nullptr || sequence->blocks.committed() == 0) continue;
    const BlockTable& table = sequence->blocks;
    const std::size_t used = (table.committed() + 15) / 16;
    all[scenario.request_id(t)] = {
        .committed = table.committed(),
        .tokens = sequence->tokens,
        .blocks = {table.blocks().begin(), table.blocks().begin() + static_cast<long>(used)},
        .record = scenario.rig.bytes_of(scenario.lease(t), table.record_blocks())};
  }
  return all;
}

/// The units that the backend's gates count; the engine's own gate runs the others.
std::ptrdiff_t backend_units(const std::vector<WatchedUnit>& units) {
  return std::ranges::count_if(units, [](const WatchedUnit& unit) {
    return unit.site != LaunchSite::Sampling && unit.site != LaunchSite::Commit;
  });
}

void flip_engine(FourTenants& scenario, const Undisturbed& calm, std::size_t k) {
  scenario.begin();
  const auto before = snapshots(scenario);
  REQUIRE(before.size() == 3);
  const std::uint64_t units_before = scenario.rig.units_run();
  const Result<StepReport> report =
      scenario.watched_step(k, [&] { scenario.rig.revoke(scenario.rig.engine_lease()); });
  scenario.check_units_after_act(~SequenceMask{0});

  const bool failed = k + 1 < calm.units.size();
  REQUIRE(report.has_value() != failed);
  if (failed) {
    REQUIRE(report.error().code == Errc::EngineDecodeFailed);
    REQUIRE(snapshots(scenario) == before);
    REQUIRE(std::cmp_equal(scenario.rig.units_run() - units_before,
                           backend_units(scenario.watch.units())));
  }
  REQUIRE(scenario.rig.step().error().code == Errc::WeightsLoading);
  REQUIRE(scenario.rig.early_completions().empty());
  scenario.rig.restore_weights();
  scenario.rig.run();
  REQUIRE(scenario.tokens() == calm.at_end);
  scenario.end();
}

void revoke_everywhere(BackendUnderTest backend) {
  FourTenants scenario(backend.options());
  const Undisturbed calm = scenario.run_undisturbed();
  REQUIRE(calm.units.size() > (backend.is_cuda() ? 50 : 100));
  REQUIRE(calm.units.back().site == LaunchSite::Commit);
  for (const std::size_t k : moments(calm, backend)) {
    const std::uint32_t victim = k % 2 == 0 ? 1 : FourTenants::kLate;
    CAPTURE(backend, k, calm.units.size(), name(calm.units[k].site), victim);
    // The fake driver is slow, so each of its launch modes tests only one of the two.
    if (backend.threads != BackendUnderTest::kCuda) flip_tenant(scenario, calm, victim, k);
    if (backend.threads != BackendUnderTest::kCudaGraphs) flip_engine(scenario, calm, k);
  }
}

}  // namespace

TEST_CASE("revocation: a word stored during a forward pass is obeyed before the next unit") {
  revoke_everywhere({GENERATE(1u, 2u, 3u, 0u)});
}

TEST_CASE(
    "revocation: on a GPU a word stored during a forward pass is obeyed before the next launch") {
  for (const std::uint32_t cuda : cuda_backends()) revoke_everywhere({cuda});
}

TEST_CASE("revocation: a tenant notified in a step that then fails is notified once") {
  FourTenants scenario({.threads = 1});
  const Undisturbed calm = scenario.run_undisturbed();
  scenario.begin();
  const auto failed = scenario.watched_step(10, [&] {
    scenario.rig.revoke(scenario.lease(1));
    // The engine's word is stored a few units later, after the tenant was refused.
    scenario.watch.act_again(20, [&] { scenario.rig.revoke(scenario.rig.engine_lease()); });
  });
  REQUIRE(failed.error().code == Errc::EngineDecodeFailed);
  REQUIRE(scenario.rig.early_completions().size() == 1);
  REQUIRE(scenario.rig.sequence("r1") == nullptr);
  scenario.rig.restore_weights();
  scenario.rig.run();
  REQUIRE(scenario.outcome(1).completions.size() == 1);
  for (const std::uint32_t survivor : {0u, 2u, 3u}) {
    REQUIRE(scenario.outcome(survivor).tokens == calm.at_end[survivor]);
  }
}

}  // namespace leasehold::testing
