/// The demo's broker and worker, and what every part of the demo uses.
#pragma once

#include <memory>

#include "tests/checks/demo/poller.hpp"
#include "tests/checks/demo/settings.hpp"
#include "tests/checks/local_system/local_system.hpp"

namespace leasehold::demo {

/// Lifetime: `settings` and `poller` outlive it. The destructor deletes the logs unless `keep_logs`
/// was called.
class System {
 public:
  /// Starts both and waits until the worker is ready. Errors: those of LocalSystem, with the
  /// directory of the logs; TimedOut after Ctrl-C.
  static Result<std::unique_ptr<System>> start(const Settings& settings, const Poller& poller);

  BrokerView& broker() { return local_->view(); }
  const ProgramStarter& programs() const { return local_->programs(); }
  const Settings& settings() const { return settings_; }
  const Poller& poller() const { return poller_; }
  void keep_logs() { local_->keep_directory(); }

  /// Runs brokerctl with these arguments. Errors: TimedOut; SystemError with the end of its log
  /// when it does not exit with 0.
  Result<void> brokerctl(std::vector<std::string> arguments);

  /// Kills the worker and starts its successor. Does not wait until that one is ready.
  Result<void> replace_killed_worker();

  /// The error of the broker or worker that has exited.
  Result<void> check_alive() { return local_->check_alive(); }

 private:
  System(const Settings& settings, const Poller& poller, std::unique_ptr<LocalSystem> local)
      : settings_(settings), poller_(poller), local_(std::move(local)) {}
  Result<void> start_processes();
  Result<void> start_worker();

  const Settings& settings_;
  const Poller& poller_;
  std::unique_ptr<LocalSystem> local_;
};

}  // namespace leasehold::demo
