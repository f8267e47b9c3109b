/// One run of a real system in which one process dies or stops at a named point, and what is left.
///
/// The cast: `ann` and `bob` are never harmed, `cat` is whom it happens to, or on whose worker.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/fault/fault_case.hpp"
#include "tests/support/system.hpp"
#include "tools/checks/soak/judge.hpp"

namespace leasehold::testing {

/// What each says; `cat` long enough to be disturbed, `bob` goes on under another lease if need be.
TenantSpec ann();
TenantSpec bob();
TenantSpec cat();

/// A program that was told to fail.
class FaultTarget {
 public:
  explicit FaultTarget(Child& child, Action action) : child_(&child), action_(action) {}
  /// Dead or standing, as asked for.
  bool is_down() const;
  bool wait_until_down() const;
  void resume() { (void)child_->signal(SIGCONT); }
  bool ends_by_sigkill();

 private:
  Child* child_;
  Action action_;
};

class FaultScenario {
 public:
  explicit FaultScenario(SystemSpec spec) : system_(std::move(spec)) {}

  System& system() { return system_; }

  Tenant& start(const TenantSpec& spec);
  /// Started by `start`, in that order.
  Tenant& tenant(std::size_t index) { return *tenants_.at(index).process; }
  std::size_t tenants() const { return tenants_.size(); }

  /// Descriptors of what the lease holds now, for later. Nothing when it is gone already.
  void keep_memory(LeaseId lease);
  bool kept_memory_is_zero_and_free();

  /// Takes every lease back that is Live on this worker; how many there were.
  std::size_t revoke_all_on(const std::string& worker);

  /// Everybody has ended; a new request is served by this worker, its text is the undisturbed one.
  void check_serves_again(const std::string& worker);

  /// What is wrong with the history of the whole run, one line each; empty when nothing is.
  std::vector<std::string> violations();

  /// Counts bytes once more.
  void sample_status() { samples_.push_back(system_.status()); }
  /// From now on a new broker answers: what was seen so far belongs to the one before.
  void on_new_broker();

 private:
  struct Started {
    TenantSpec spec;
    std::unique_ptr<Tenant> process;
    int exit_code = 0;
  };
  soak::History history();

  System system_;
  std::vector<Started> tenants_;
  std::vector<demo::OpenedExtent> kept_;
  std::vector<wire::StatusView> samples_;
  std::vector<std::vector<wire::StatusView>> samples_before_;
};

/// What the tenant says in a undisturbed_system system; computed once.
const std::vector<std::int32_t>& undisturbed(const TenantSpec& spec);

/// Each is one run; they check by themselves.
void broker_fails(const Fault& fault);
void worker_fails(const Fault& fault);
void tenant_fails(const Fault& fault);

}  // namespace leasehold::testing
