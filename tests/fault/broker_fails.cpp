#include <signal.h>

#include <catch2/catch.hpp>

#include "common/machine/process.hpp"
#include "tests/fault/scenario.hpp"

namespace leasehold::testing {
namespace {

/// No lease is renewed without a broker, so all end soon.
constexpr const char* kShortTtl_ms = "2000";
constexpr const char* kLongTtl_ms = "60000";

class BrokerScenario {
 public:
  explicit BrokerScenario(const Fault& fault)
      : scenario_({.worker_arguments = {"--slow-motion-us", "30"},
                   .broker_fault = text(fault),
                   .start_worker = false}),
        target_(system().broker(), fault.action),
        killed_(fault.action == Action::Kill) {}

  void run() {
    system().start_worker("w1");
    REQUIRE(eventually([&] { return system().worker_reports_ready() || target_.is_down(); }));
    if (!target_.is_down()) disturb_streams();
    REQUIRE(target_.wait_until_down());
    replace_broker();
    scenario_.check_serves_again("w1");
  }

 private:
  System& system() { return scenario_.system(); }

  void admit(const char* ttl_ms) {
    for (const char* tenant : {"ann", "cat"}) system().admit(tenant, {"--ttl-ms", ttl_ms});
  }

  /// Causes grants, then a revocation, a fence and a scrub. The callers may never get a reply.
  void disturb_streams() {
    admit(kShortTtl_ms);
    scenario_.sample_status();
    Tenant& ann_streams = scenario_.start(ann());
    target_.read(ann_streams, 1);
    Tenant& cat_streams = scenario_.start(cat());
    target_.read(cat_streams, kRevokeAfterTokens);
    if (target_.is_down() || cat_streams.record().leases.empty()) return;
    revoke_process_.emplace(
        system().start_brokerctl({"revoke", to_string(cat_streams.record().leases.back())}));
  }

  /// Tenants decode until their deadlines, whether the broker is dead or stopped. A pending call
  /// fails when the broker is dead.
  void replace_broker() {
    if (!killed_) {
      wait_for_streams();
      (void)system().broker().signal(SIGKILL);
    }
    CHECK(target_.ends_by_sigkill());
    scenario_.on_new_broker();
    REQUIRE(system().start_broker());
    Child& worker = system().worker("w1");
    REQUIRE(eventually([&] { return has_exited(worker.pidfd()) || system().worker_is_ready(); }));
    if (has_exited(worker.pidfd())) system().start_ready_worker("w1");
    admit(kLongTtl_ms);
  }

  void wait_for_streams() {
    for (std::size_t i = 0; i < scenario_.tenants(); ++i) {
      Tenant& tenant = scenario_.tenant(i);
      if (!tenant.record().tokens.empty()) tenant.finish();
    }
  }

  FaultScenario scenario_;
  FaultTarget target_;
  bool killed_;
  std::optional<Child> revoke_process_;
};

}  // namespace

void broker_fails(const Fault& fault) {
  BrokerScenario(fault).run();
}

}  // namespace leasehold::testing
