/// The tenants' processes and their output.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/machine/child_process.hpp"
#include "tests/checks/demo/observation.hpp"
#include "tests/checks/demo/system.hpp"

namespace leasehold::demo {

/// One leasehold-tenant process. Threads: one.
class TenantProcess {
 public:
  /// Errors: those of Child::start.
  static Result<std::unique_ptr<TenantProcess>> start(const System& system, const TenantSpec& spec);

  const TenantSpec& spec() const { return spec_; }
  const TenantRecord& record() const { return record_; }
  /// True once its output has ended, because the process exited or was killed.
  bool is_over() const { return record_.gone; }
  int output() const { return child_.output().get(); }

  /// Reads what is available. Errors: MalformedMessage, SystemError.
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

/// Reads all tenants until all are over, and calls `on_progress` after each output and at least
/// every 20 ms.
/// Errors: those of `on_progress` and check_alive; TimedOut after 5 minutes without output.
Result<void> read_all(System& system, const TenantProcesses& tenants,
                      const std::function<Result<void>()>& on_progress);

}  // namespace leasehold::demo
