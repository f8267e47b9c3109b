/// Runs a real system in which one process dies or stops at a fault point, and checks what is left.
///
/// Tenants: `ann` and `bob` must not be affected; `cat` or its worker fails.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/checks/runner/check.hpp"
#include "tests/fault/fault_case.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {

/// Tokens that a tenant receives before its lease is revoked.
inline constexpr std::size_t kRevokeAfterTokens = 12;

/// Their requests. `cat` decodes long enough to be disturbed; `bob` may continue under another
/// lease.
TenantSpec ann();
TenantSpec bob();
TenantSpec cat();

/// A program that runs with a fault plan.
class FaultTarget {
 public:
  explicit FaultTarget(Child& child, Action action) : child_(&child), action_(action) {}
  /// Dead or stopped, as planned.
  bool is_down() const;
  bool wait_until_down() const;
  /// Reads until the tenant has this many tokens or the target is down; false when the output ends
  /// or a minute passes first.
  bool read(Tenant& tenant, std::size_t tokens) const;
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
  /// In the order of `start` calls.
  Tenant& tenant(std::size_t index) { return *tenants_.at(index).process; }
  std::size_t tenants() const { return tenants_.size(); }

  /// Keeps descriptors of the lease's current memory. Does nothing when the lease is gone.
  void keep_memory(LeaseId lease);
  bool kept_memory_is_zero_and_free();

  /// Revokes every Live lease on this worker and returns their number.
  std::size_t revoke_all_on(const std::string& worker);

  /// Every request has ended; this worker serves a new one, whose text is the undisturbed text; and
  /// the history of the whole run keeps every promise.
  void check_serves_again(const std::string& worker);

  /// Takes one more sample of the broker's memory accounts.
  void sample_status() { samples_.push_back(system_.status()); }
  /// A new broker answers from now on; earlier samples belong to the one before.
  void on_new_broker();

 private:
  struct Started {
    TenantSpec spec;
    std::unique_ptr<Tenant> process;
    int exit_code = 0;
  };
  runner::Record history();

  System system_;
  std::vector<Started> tenants_;
  std::vector<runner::OpenedExtent> kept_;
  std::vector<wire::StatusView> samples_;
  std::vector<std::vector<wire::StatusView>> samples_before_;
};

/// The tenant's tokens in a system without faults; computed once.
const std::vector<std::int32_t>& undisturbed(const TenantSpec& spec);

/// One run each; the checks are inside.
void broker_fails(const Fault& fault);
void worker_fails(const Fault& fault);
void tenant_fails(const Fault& fault);

}  // namespace leasehold::testing
