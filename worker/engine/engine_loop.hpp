/// Runs an engine on the calling thread: commands in, events out, steps in between.
///
/// Threads: `post` and `stop` from any; `run` and every command and hook on one, the engine's.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "worker/engine/engine.hpp"
#include "worker/engine/restore_window.hpp"

namespace leasehold {

class EngineLoop {
 public:
  using Command = std::move_only_function<void(Engine&)>;

  struct Hooks {
    std::function<void(StepReport)> on_report;
    std::function<void(std::vector<GrowthRequest>)> on_growth;
    /// No request is left under these draining leases. Follows `on_report` with their last ends.
    std::function<void(std::vector<LeaseId>)> on_drained;
    /// Gets the use of divided quotas after every step that changed it.
    std::function<void(std::vector<wire::TenantUsage>)> on_usage = {};
    /// Gets what tenants were served: before the loop waits, and once a second while it does not.
    std::function<void(std::vector<wire::TenantServed>)> on_served = {};
    /// Sees the engine right after `on_served`, also when there was nothing to serve.
    std::function<void(const Engine&)> on_observed = {};
    /// Gets the ends of fills of shared leases.
    std::function<void(std::vector<PrefixFilled>)> on_filled = {};
    /// Restores one revoked part of the weights, or returns why it cannot. The loop calls it until
    /// none is missing and runs commands in between. RestoreWindow says when the requests stop
    /// waiting; the loop calls the hook again at the next command.
    std::function<Result<void>(Engine&)> on_weights_lost;
    /// A part cannot be restored, and every request is about to end with this error; or nothing:
    /// all parts are there again. Called when that changes. Meanwhile the loop tries to restore the
    /// part at every command and at an interval.
    std::function<void(const std::optional<Error>& missing)> on_service_changed = {};
  };

  static constexpr Duration kRestoreInterval = std::chrono::seconds(2);
  EngineLoop(Engine& engine, Hooks hooks, Duration restore_interval = kRestoreInterval)
      : engine_(&engine), hooks_(std::move(hooks)), restore_interval_(restore_interval) {}

  /// Runs `command` between two steps.
  void post(Command command);

  /// Returns after `stop`, once the step in progress is over. Errors: the device's fault, which is
  /// final; every request has ended with it.
  Result<void> run();
  void stop();

 private:
  std::vector<Command> take_commands(bool may_wait);
  bool step_once();
  void report_stopped();
  bool recover();
  void restore_failed(const Error& why);
  void set_missing(const std::optional<Error>& missing);
  void end_if(const std::optional<Error>& error);
  void end_all(const Error& error);
  void report_usage();
  void report_drained();
  void report_filled();
  void report_served(bool busy);

  Engine* engine_;
  Hooks hooks_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> commands_;
  bool stopping_ = false;
  Duration restore_interval_;
  RestoreWindow restore_window_;
  std::optional<Error> missing_;  // why a part cannot be restored
  TimePoint next_served_;         // while busy
};

}  // namespace leasehold
