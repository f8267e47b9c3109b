/// One of four tenants loses its lease and returns; the other three are not affected.
#include <catch2/catch.hpp>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kAllTenants = FourTenants::kTenants;
constexpr std::uint32_t kRevokedTenant = 2;
constexpr std::uint32_t kRecoveryTokens = 24;

PromptRequest tenant_request(const EngineRig& rig, std::uint32_t tenant, LeaseId lease) {
  return rig.request("t" + std::to_string(tenant), lease, FourTenants::request_id(tenant),
                     rig.encode(prompts()[tenant]), kRecoveryTokens);
}

/// The running requests and their positions.
struct Handle {
  const Sequence* sequence;
  std::uint32_t stop_slot;
  std::vector<BlockId> record;
  bool operator==(const Handle&) const = default;
};

Handle handle(const EngineRig& rig, std::uint32_t tenant) {
  const Sequence* sequence = rig.sequence(FourTenants::request_id(tenant));
  REQUIRE(sequence != nullptr);
  const auto record = sequence->blocks.record_blocks();
  return {sequence, sequence->stop_slot, {record.begin(), record.end()}};
}

std::uint32_t live_tenants(EngineRig& rig) {
  return rig.engine().scheduler().running().size();
}

}  // namespace

TEST_CASE("revocation: one of four tenants recovers, and the other three are not affected") {
  const BackendUnderTest backend{GENERATE(from_range(with_cuda({2})))};
  std::vector<std::vector<TokenId>> undisturbed;
  for (std::uint32_t t = 0; t < kAllTenants; ++t) {
    EngineRig alone(backend.options());
    REQUIRE(alone.submit(tenant_request(alone, t, alone.grant("t" + std::to_string(t)))));
    alone.run();
    undisturbed.push_back(alone.outcome(FourTenants::request_id(t)).tokens);
  }

  EngineRig rig(backend.options());
  std::vector<LeaseId> leases;
  for (std::uint32_t t = 0; t < kAllTenants; ++t) {
    leases.push_back(rig.grant("t" + std::to_string(t)));
    REQUIRE(rig.submit(tenant_request(rig, t, leases[t])));
  }
  for (int i = 0; i < 8; ++i) REQUIRE(rig.step());
  REQUIRE(live_tenants(rig) == kAllTenants);
  std::vector<Handle> handles;
  for (std::uint32_t t = 0; t < kAllTenants; ++t) handles.push_back(handle(rig, t));

  rig.revoke(leases[kRevokedTenant]);
  REQUIRE(rig.step());
  REQUIRE(live_tenants(rig) == kAllTenants - 1);
  for (const std::uint32_t survivor : {0u, 1u, 3u}) {
    REQUIRE(handle(rig, survivor) == handles[survivor]);
    REQUIRE(rig.outcome(FourTenants::request_id(survivor)).tokens.size() == 9);
  }
  REQUIRE(rig.outcome(FourTenants::request_id(kRevokedTenant)).completions.size() == 1);
  REQUIRE(rig.outcome(FourTenants::request_id(kRevokedTenant)).completions[0].reason ==
          CompletionReason::Revoked);

  PromptRequest again = tenant_request(rig, kRevokedTenant, rig.grant("t2"));
  again.emitted = rig.outcome(FourTenants::request_id(kRevokedTenant)).tokens;
  again.rebound_from = leases[kRevokedTenant];
  REQUIRE(again.emitted.size() == 8);
  REQUIRE(rig.submit(again));
  REQUIRE(rig.step());
  REQUIRE(live_tenants(rig) == kAllTenants);
  const std::vector<Rebound> rebounds =
      rig.outcome(FourTenants::request_id(kRevokedTenant)).rebounds;
  REQUIRE(rebounds.size() == 1);
  REQUIRE(rebounds[0].old_lease == leases[kRevokedTenant]);
  REQUIRE(rebounds[0].new_lease == again.lease);
  REQUIRE(rebounds[0].prompt_tokens == again.prompt.size());
  REQUIRE(rebounds[0].emitted_tokens == again.emitted.size());

  while (rig.outcome(FourTenants::request_id(0)).completions.empty()) {
    REQUIRE(live_tenants(rig) == kAllTenants);
    REQUIRE(rig.step());
  }
  rig.run();
  for (std::uint32_t t = 0; t < kAllTenants; ++t) {
    CAPTURE(t);
    const RequestOutcome& outcome = rig.outcome(FourTenants::request_id(t));
    REQUIRE(outcome.tokens == undisturbed[t]);
    for (std::uint32_t i = 0; i < outcome.positions.size(); ++i) REQUIRE(outcome.positions[i] == i);
  }
}

}  // namespace leasehold::testing
