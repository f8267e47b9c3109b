/// Tenants at work: their processes, and what they tell while they run.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/child_process.hpp"
#include "tools/checks/demo/observation.hpp"
#include "tools/checks/demo/system.hpp"

namespace leasehold::demo {

/// One leasehold-tenant process. Threads: one.
class TenantProcess {
 public:
  /// Errors: those of Child::start.
  static Result<std::unique_ptr<TenantProcess>> start(const System& system, const TenantSpec& spec);

  const TenantSpec& spec() const { return spec_; }
  const TenantRecord& record() const { return record_; }
  /// Its output has ended: it exited or was killed.
  bool is_over() const { return record_.gone; }
  int output() const { return child_.output().get(); }

  /// Takes in what can be read now. Errors: MalformedMessage.
  Result<void> read();

  Result<void> kill();

 private:
  TenantProcess(TenantSpec spec, Child child) : spec_(std::move(spec)), child_(std::move(child)) {
    record_.name = spec_.name;
  }

  TenantSpec spec_;
  Child child_;
  LineBuffer lines_;
  TenantRecord record_;
};

using TenantProcesses = std::vector<std::unique_ptr<TenantProcess>>;

/// Listens to all of them until all are over, and calls `on_progress` whenever something was
/// told, and at least every 20 ms.
/// Errors: those of the call, of check_alive; TimedOut when nobody tells anything for 5 minutes.
Result<void> read_all(System& system, const TenantProcesses& tenants,
                      const std::function<Result<void>()>& on_progress);

}  // namespace leasehold::demo
