#include <algorithm>
#include <catch2/catch.hpp>

#include "common/machine/process.hpp"
#include "tests/fault/scenario.hpp"

namespace leasehold::testing {
namespace {

/// Long enough for a loaded machine, short enough to wait for. The timeout for unmaps is five times
/// as long.
constexpr const char* kFenceTimeout_ms = "1500";

SystemSpec spec() {
  return {.broker_arguments = {"--fence-timeout-ms", kFenceTimeout_ms},
          .worker_arguments = {"--slow-motion-us", "30", "--threads", "1"},
          .start_worker = false};
}

TenantSpec on(TenantSpec spec, const std::string& worker) {
  spec.more = {"--worker", worker};
  return spec;
}

class WorkerScenario {
 public:
  explicit WorkerScenario(const Fault& fault) : fault_(fault), scenario_(spec()) {
    for (const char* tenant : {"ann", "bob", "cat"}) system().admit(tenant);
    system().start_worker("w1", text(fault));
    target_.emplace(system().worker("w1"), fault.action);
  }

  void run() {
    REQUIRE(eventually([&] { return system().worker_reports_ready() || target_->is_down(); }));
    if (!target_->is_down()) disturb_streams();
    REQUIRE(target_->wait_until_down());
    resolve();
    judge();
  }

 private:
  System& system() { return scenario_.system(); }

  void disturb_streams() {
    system().start_ready_worker("w2");
    scenario_.start(on(ann(), "w2"));
    Tenant& held = scenario_.start(on(cat(), "w1"));
    scenario_.start(bob());
    if (!target_->read(held, 1) || held.record().leases.empty()) return;
    scenario_.keep_memory(held.record().leases.back());
    if (!target_->read(held, kRevokeAfterTokens) || target_->is_down()) return;
    scenario_.sample_status();
    system().brokerctl({"revoke", to_string(held.record().leases.back())});
    scenario_.start(on(ann(), "w1"));  // gives its lease back when the request completes
  }

  /// A dead worker delays no process. The ladder kills a stopped one as soon as memory is revoked
  /// from it; a stopped worker without leases may go on.
  void resolve() {
    if (fault_.action == Action::Kill) {
      CHECK(target_->ends_by_sigkill());
    } else if (has_outstanding_leases()) {
      CHECK(target_->ends_by_sigkill());
    } else {
      target_->resume();
      CHECK(eventually([&] { return system().worker_is_ready("w1"); }));
    }
  }

  bool has_outstanding_leases() {
    const bool had_leases = scenario_.revoke_all_on("w1") > 0;
    return had_leases || fault_.site != FaultSite::WorkerAttached;
  }

  void judge() {
    if (has_exited(system().worker("w1").pidfd())) {
      CHECK(eventually([&] { return is_forgotten() && no_lease_left_on_the_dead(); }));
      CHECK(scenario_.kept_memory_is_zero_and_free());
      system().start_ready_worker("w1");
    }
    scenario_.check_serves_again("w1");
  }

  /// True once the broker has forgotten `w1`, so its name is free again.
  bool is_forgotten() {
    const auto workers = system().view().workers();
    return workers && std::ranges::none_of(*workers, [](const wire::WorkerView& worker) {
             return worker.worker == "w1" && worker.state != "gone";
           });
  }

  /// `w1` still refers to the dead worker: no other one has been started yet.
  bool no_lease_left_on_the_dead() {
    const auto leases = system().view().leases();
    return leases && std::ranges::none_of(*leases, [](const wire::LeaseView& lease) {
             return lease.worker == "w1" && lease.state != LeaseState::Fenced;
           });
  }

  Fault fault_;
  FaultScenario scenario_;
  std::optional<FaultTarget> target_;
};

}  // namespace

void worker_fails(const Fault& fault) {
  WorkerScenario(fault).run();
}

}  // namespace leasehold::testing
