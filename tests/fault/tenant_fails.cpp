#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/fault/scenario.hpp"

namespace leasehold::testing {
namespace {

constexpr const char* kTenantTtl_ms = "5000";

/// Only a tenant that rebinds after its first lease was revoked acquires a second one.
bool needs_second_lease(const Fault& fault) {
  return fault.arrival > 1 && fault.site != FaultSite::TenantTokenReceived;
}

TenantSpec armed_cat(const Fault& fault) {
  TenantSpec spec = cat();
  spec.rebind = needs_second_lease(fault);
  spec.fault = text(fault);
  return spec;
}

/// The newest lease of `cat` in the broker's books: the tenant may not have reported it yet.
wire::LeaseView last_lease_of_cat(System& system) {
  const auto leases = system.leases_of("cat");
  REQUIRE_FALSE(leases.empty());
  return *std::ranges::max_element(leases, {}, &wire::LeaseView::deadline_boottime_ns);
}

void disturb(FaultScenario& scenario, Tenant& cat, const FaultTarget& target) {
  target.read(cat, kRevokeAfterTokens);
  if (target.is_down()) return;
  REQUIRE_FALSE(cat.record().leases.empty());
  const LeaseId lease = cat.record().leases.back();
  scenario.keep_memory(lease);
  scenario.sample_status();
  if (cat.record().leases.size() == 1) scenario.system().brokerctl({"revoke", to_string(lease)});
}

}  // namespace

void tenant_fails(const Fault& fault) {
  FaultScenario scenario({.worker_arguments = {"--slow-motion-us", "30"}});
  System& system = scenario.system();
  for (const char* tenant : {"ann", "bob"}) system.admit(tenant);
  system.admit("cat", {"--ttl-ms", kTenantTtl_ms});
  scenario.start(ann());
  scenario.start(bob());
  Tenant& cat = scenario.start(armed_cat(fault));
  FaultTarget target(cat.child(), fault.action);

  if (needs_second_lease(fault)) disturb(scenario, cat, target);
  REQUIRE(target.wait_until_down());

  // The connection of a dead tenant closes immediately. A stopped tenant stops renewing.
  const LeaseId lease = last_lease_of_cat(system).lease;
  scenario.keep_memory(lease);
  REQUIRE(system.eventually_fenced(lease));
  const wire::LeaseView ended = system.lease(lease);
  const bool killed = fault.action == Action::Kill;
  CHECK(ended.reason == (killed ? RevokeReason::HolderGone : RevokeReason::TtlExpired));
  CHECK((ended.proof == "LaunchQuiet" || ended.proof == "NeverMapped"));
  CHECK(scenario.kept_memory_is_zero_and_free());
  scenario.sample_status();
  if (killed) {
    CHECK(target.ends_by_sigkill());
  } else {
    target.resume();  // learns the end of its lease, or gets another one
  }

  scenario.check_serves_again("w1");
}

}  // namespace leasehold::testing
