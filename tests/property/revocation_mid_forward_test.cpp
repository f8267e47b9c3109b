/// The pin: a word that flips while a forward pass runs is obeyed before the next unit.
#include <catch2/catch.hpp>
#include <set>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

using Tokens = std::array<std::vector<TokenId>, FourTenants::kTenants>;

/// What happens when nothing happens.
struct Undisturbed {
  std::vector<WatchedUnit> units;  ///< Of the mixed step.
  Tokens after_step;
  Tokens at_end;
};

Undisturbed run_undisturbed(FourTenants& scene) {
  Undisturbed calm;
  scene.begin();
  scene.watch.start();
  REQUIRE(scene.rig.step());
  calm.units = scene.watch.units();
  scene.watch.stop();
  calm.after_step = scene.tokens();
  scene.rig.run();
  calm.at_end = scene.tokens();
  scene.end();
  return calm;
}

/// Every unit; on the reference backend, where a unit is a single row of a matrix and a step has
/// thousands, and on a card that is played, which is slow, the first unit of every kind of launch
/// and the last two of all.
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

/// The thread of the act runs nothing more for `mask`; any other at most the unit it was in.
void check_units(const UnitWatch& watch, SequenceMask mask) {
  REQUIRE(watch.acted());
  const std::uint32_t actor = watch.units()[watch.at()].thread;
  for (const auto& [thread, count] : watch.units_after_act(mask)) {
    CAPTURE(thread, actor, count);
    REQUIRE(count <= (thread == actor ? 0 : 1));
  }
}

void check_victim(FourTenants& scene, std::uint32_t victim, bool discarded) {
  const Outcome& outcome = scene.outcome(victim);
  REQUIRE(outcome.completions.size() == 1);
  const Completed& end = outcome.completions[0];
  REQUIRE(end.reason == CompletionReason::Revoked);
  REQUIRE(end.verdict.has_value());
  REQUIRE(end.verdict->lease == scene.lease(victim));
  REQUIRE_FALSE(end.verdict->engine_scope);
  REQUIRE(end.verdict->reason == RevokeReason::Operator);
  REQUIRE(end.emitted_tokens == outcome.tokens.size());
  const std::vector<EarlyEnd> early = scene.rig.early_ends();
  REQUIRE(early.size() == (discarded ? 1 : 0));
  if (discarded) REQUIRE(early[0].in_step);
}

void flip_tenant(FourTenants& scene, const Undisturbed& calm, std::uint32_t victim, std::size_t k) {
  scene.begin();
  const Tokens before = scene.tokens();
  scene.watch.start(k, [&] { scene.rig.revoke(scene.lease(victim)); });
  REQUIRE(scene.rig.step());
  scene.watch.stop();
  check_units(scene.watch, SequenceMask{1} << victim);

  // The last unit is the commit: it had polled, so that token is out.
  const bool discarded = k + 1 < calm.units.size();
  Tokens expected = calm.after_step;
  if (discarded) expected[victim] = before[victim];
  REQUIRE(scene.tokens() == expected);

  scene.rig.run();
  check_victim(scene, victim, discarded);
  Tokens at_end = calm.at_end;
  at_end[victim] = expected[victim];
  REQUIRE(scene.tokens() == at_end);
  scene.end();
}

/// All that a failed step must leave alone.
struct Standing {
  std::uint32_t committed;
  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;
  std::vector<std::byte> record;
  bool operator==(const Standing&) const = default;
};

std::map<std::string, Standing> standings(FourTenants& scene) {
  std::map<std::string, Standing> all;
  for (std::uint32_t t = 0; t < FourTenants::kTenants; ++t) {
    const Sequence* sequence = scene.rig.sequence(scene.request_id(t));
    if (sequence == nullptr || sequence->blocks.committed() == 0) continue;
    const BlockTable& table = sequence->blocks;
    const std::size_t used = (table.committed() + 15) / 16;
    all[scene.request_id(t)] = {
        .committed = table.committed(),
        .tokens = sequence->tokens,
        .blocks = {table.blocks().begin(), table.blocks().begin() + static_cast<long>(used)},
        .record = scene.rig.bytes_of(scene.lease(t), table.record_blocks())};
  }
  return all;
}

void flip_engine(FourTenants& scene, const Undisturbed& calm, std::size_t k) {
  scene.begin();
  const auto before = standings(scene);
  REQUIRE(before.size() == 3);
  scene.watch.start(k, [&] { scene.rig.revoke(scene.rig.engine_lease()); });
  const std::uint64_t units_before = scene.rig.units_run();
  const Result<StepReport> report = scene.rig.step();
  scene.watch.stop();
  check_units(scene.watch, ~SequenceMask{0});

  const bool failed = k + 1 < calm.units.size();
  REQUIRE(report.has_value() != failed);
  if (failed) {
    REQUIRE(report.error().code == Errc::EngineDecodeFailed);
    REQUIRE(standings(scene) == before);
    REQUIRE(scene.rig.units_run() - units_before == scene.watch.units().size());
  }
  REQUIRE(scene.rig.step().error().code == Errc::MissingWeight);
  REQUIRE(scene.rig.early_ends().empty());
  scene.rig.restore_weights();
  scene.rig.run();
  REQUIRE(scene.tokens() == calm.at_end);
  scene.end();
}

void revoke_everywhere(BackendUnderTest backend) {
  FourTenants scene(backend.options());
  const Undisturbed calm = run_undisturbed(scene);
  REQUIRE(calm.units.size() > (backend.is_cuda() ? 50 : 100));
  REQUIRE(calm.units.back().site == LaunchSite::Commit);
  for (const std::size_t k : moments(calm, backend)) {
    const std::uint32_t victim = k % 2 == 0 ? 1 : FourTenants::kLate;
    CAPTURE(backend, k, calm.units.size(), name(calm.units[k].site), victim);
    // A card that is played is slow, so each way of launching there shows one of the two.
    if (backend.threads != BackendUnderTest::kCuda) flip_tenant(scene, calm, victim, k);
    if (backend.threads != BackendUnderTest::kCudaGraphs) flip_engine(scene, calm, k);
  }
}

}  // namespace

TEST_CASE("revocation in the middle of a forward pass is refused before the next unit") {
  revoke_everywhere({GENERATE(1u, 2u, 3u, 0u)});
}

TEST_CASE(
    "revocation on a card in the middle of a forward pass is refused before the next launch") {
  for (const std::uint32_t cuda : cuda_backends()) revoke_everywhere({cuda});
}

TEST_CASE("revocation: a tenant told in a step that then fails is told once") {
  FourTenants scene({.threads = 1});
  const Undisturbed calm = run_undisturbed(scene);
  scene.begin();
  scene.watch.start(10, [&] {
    scene.rig.revoke(scene.lease(1));
    // The engine's word follows a few units later, when the tenant has been refused.
    scene.watch.act_again(20, [&] { scene.rig.revoke(scene.rig.engine_lease()); });
  });
  REQUIRE(scene.rig.step().error().code == Errc::EngineDecodeFailed);
  scene.watch.stop();
  REQUIRE(scene.rig.early_ends().size() == 1);
  REQUIRE(scene.rig.sequence("r1") == nullptr);
  scene.rig.restore_weights();
  scene.rig.run();
  REQUIRE(scene.outcome(1).completions.size() == 1);
  for (const std::uint32_t survivor : {0u, 2u, 3u}) {
    REQUIRE(scene.outcome(survivor).tokens == calm.at_end[survivor]);
  }
}

}  // namespace leasehold::testing
