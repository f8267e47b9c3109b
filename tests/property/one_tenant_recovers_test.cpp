/// One of four tenants loses its lease and returns; the other three are not affected.
#include <catch2/catch.hpp>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTenants = 4;
constexpr std::uint32_t kVictim = 2;
constexpr std::uint32_t kTokens = 24;

std::string id_of(std::uint32_t tenant) {
  return "r" + std::to_string(tenant);
}

PromptRequest make_request(const EngineRig& rig, std::uint32_t tenant, LeaseId lease) {
  return rig.request("t" + std::to_string(tenant), lease, id_of(tenant),
                     rig.encode(prompts()[tenant]), kTokens);
}

/// The running requests and their positions.
struct Handle {
  const Sequence* sequence;
  std::uint32_t stop_slot;
  std::vector<BlockId> record;
  bool operator==(const Handle&) const = default;
};

Handle handle(const EngineRig& rig, std::uint32_t tenant) {
  const Sequence* sequence = rig.sequence(id_of(tenant));
  REQUIRE(sequence != nullptr);
  const auto record = sequence->blocks.record_blocks();
  return {sequence, sequence->stop_slot, {record.begin(), record.end()}};
}

std::uint32_t live_tenants(EngineRig& rig) {
  return rig.engine().scheduler().running_count();
}

void check_gapless(const RequestOutcome& outcome) {
  for (std::uint32_t i = 0; i < outcome.positions.size(); ++i) REQUIRE(outcome.positions[i] == i);
}

}  // namespace

TEST_CASE("revocation: one of four tenants recovers, and the other three are not affected") {
  const BackendUnderTest backend{GENERATE(from_range(with_cuda({2})))};
  std::vector<std::vector<TokenId>> undisturbed;
  for (std::uint32_t t = 0; t < kTenants; ++t) {
    EngineRig alone(backend.options());
    REQUIRE(alone.submit(make_request(alone, t, alone.grant("t" + std::to_string(t)))));
    alone.run();
    undisturbed.push_back(alone.outcome(id_of(t)).tokens);
  }

  EngineRig rig(backend.options());
  std::vector<LeaseId> leases;
  for (std::uint32_t t = 0; t < kTenants; ++t) {
    leases.push_back(rig.grant("t" + std::to_string(t)));
    REQUIRE(rig.submit(make_request(rig, t, leases[t])));
  }
  for (int i = 0; i < 8; ++i) REQUIRE(rig.step());
  REQUIRE(live_tenants(rig) == kTenants);
  std::vector<Handle> handles;
  for (std::uint32_t t = 0; t < kTenants; ++t) handles.push_back(handle(rig, t));

  rig.revoke(leases[kVictim]);
  REQUIRE(rig.step());
  REQUIRE(live_tenants(rig) == kTenants - 1);
  for (const std::uint32_t survivor : {0u, 1u, 3u}) {
    REQUIRE(handle(rig, survivor) == handles[survivor]);
    REQUIRE(rig.outcome(id_of(survivor)).tokens.size() == 9);
  }
  REQUIRE(rig.outcome(id_of(kVictim)).completions.size() == 1);
  REQUIRE(rig.outcome(id_of(kVictim)).completions[0].reason == CompletionReason::Revoked);

  PromptRequest again = make_request(rig, kVictim, rig.grant("t2"));
  again.emitted = rig.outcome(id_of(kVictim)).tokens;
  again.rebound_from = leases[kVictim];
  REQUIRE(again.emitted.size() == 8);
  REQUIRE(rig.submit(again));
  REQUIRE(rig.step());
  REQUIRE(live_tenants(rig) == kTenants);
  const std::vector<Rebound> rebounds = rig.outcome(id_of(kVictim)).rebounds;
  REQUIRE(rebounds.size() == 1);
  REQUIRE(rebounds[0].old_lease == leases[kVictim]);
  REQUIRE(rebounds[0].new_lease == again.lease);
  REQUIRE(rebounds[0].replayed_tokens == again.prompt.size() + again.emitted.size());

  while (rig.outcome(id_of(0)).completions.empty()) {
    REQUIRE(live_tenants(rig) == kTenants);
    REQUIRE(rig.step());
  }
  rig.run();
  for (std::uint32_t t = 0; t < kTenants; ++t) {
    CAPTURE(t);
    REQUIRE(rig.outcome(id_of(t)).tokens == undisturbed[t]);
    check_gapless(rig.outcome(id_of(t)));
  }
}

}  // namespace leasehold::testing
