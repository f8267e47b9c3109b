#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/fault/story.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kDisturbAfter = 12;
constexpr const char* kTtl_ms = "5000";

/// A second lease is asked for only by a tenant that goes on after its first was taken.
bool wants_another_lease(const Fault& fault) {
  return fault.arrival > 1 && fault.site != FaultSite::TenantTokenReceived;
}

TenantSpec armed_cat(const Fault& fault) {
  TenantSpec spec = cat();
  spec.rebind = wants_another_lease(fault);
  spec.fault = text(fault);
  return spec;
}

/// The last lease that `cat` has, as the broker counts: the tenant may not have told of it yet.
wire::LeaseView last_lease_of_cat(System& system) {
  const auto leases = system.leases_of("cat");
  REQUIRE_FALSE(leases.empty());
  return *std::ranges::max_element(leases, {}, &wire::LeaseView::deadline_boottime_ns);
}

void disturb(Story& story, Tenant& cat, const Victim& victim) {
  const auto enough = [&](const demo::TenantRecord& record) {
    return record.tokens.size() >= kDisturbAfter || victim.is_down();
  };
  cat.read_until(enough);
  if (victim.is_down()) return;
  REQUIRE_FALSE(cat.record().leases.empty());
  const LeaseId lease = cat.record().leases.back();
  story.keep_memory(lease);
  story.look();
  if (cat.record().leases.size() == 1) story.system().brokerctl({"revoke", to_string(lease)});
}

}  // namespace

void tenant_fails(const Fault& fault) {
  Story story({.worker_arguments = {"--slow-motion-us", "30"}});
  System& system = story.system();
  for (const char* tenant : {"ann", "bob"}) system.admit(tenant);
  system.admit("cat", {"--ttl-ms", kTtl_ms});
  story.start(ann());
  story.start(bob());
  Tenant& cat = story.start(armed_cat(fault));
  Victim victim(cat.child(), fault.action);

  if (wants_another_lease(fault)) disturb(story, cat, victim);
  REQUIRE(victim.goes_down());

  // Dead: its connection says so at once. Standing: it stops renewing.
  const LeaseId lease = last_lease_of_cat(system).lease;
  story.keep_memory(lease);
  REQUIRE(system.becomes_fenced(lease));
  const wire::LeaseView ended = system.lease(lease);
  const bool killed = fault.action == Action::Kill;
  CHECK(ended.reason == (killed ? RevokeReason::HolderGone : RevokeReason::TtlExpired));
  CHECK((ended.proof == "LaunchQuiet" || ended.proof == "NeverMapped"));
  CHECK(story.kept_memory_is_zero_and_free());
  story.look();
  if (killed) {
    CHECK(victim.ends_by_sigkill());
  } else {
    victim.go_on();  // and hears what became of its lease, or gets another
  }

  story.serves_again("w1");
  for (const std::string& wrong : story.judged()) FAIL_CHECK(wrong);
}

}  // namespace leasehold::testing
