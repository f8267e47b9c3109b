/// Runs an engine on the calling thread: executes posted commands, runs steps, and passes their
/// events to hooks.
///
/// Threads: `post`, `stop` and those about sleep from any; `run` and every command and hook on one
/// thread, the engine's.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "worker/engine/engine.hpp"
#include "worker/engine/restore_window.hpp"
#include "worker/engine/sleep_cycle.hpp"

namespace leasehold {

class EngineLoop {
 public:
  using Command = std::move_only_function<void(Engine&)>;

  struct Hooks {
    /// The worker program passes the events to TenantServer::deliver.
    std::function<void(StepReport)> on_report;
    std::function<void(std::vector<GrowthRequest>)> on_growth;
    /// No request is left under these draining leases. Called after the `on_report` that reports
    /// the ends of their last requests; up to 10 ms later while others run.
    std::function<void(std::vector<LeaseId>)> on_drained;
    /// Called with the tenants' usage of divided quotas after every step that changed it.
    std::function<void(std::vector<wire::TenantUsage>)> on_usage = {};
    /// Called with the service that tenants received: before the loop waits, and once a second
    /// while it is busy.
    std::function<void(std::vector<wire::TenantServed>)> on_served = {};
    /// Called right after `on_served`, and also when no tenant was served.
    std::function<void(const Engine&)> on_observed = {};
    /// Called with the results of fills of shared leases.
    std::function<void(std::vector<PrefixFilled>)> on_filled = {};
    /// Restores one revoked part of the weights, or returns why it cannot. The loop calls it until
    /// no part is missing and runs commands in between. RestoreWindow decides when the waiting
    /// requests end; the loop then still calls the hook at the next command.
    std::function<Result<void>(Engine&)> on_weights_lost;
    /// Called with an error when a part cannot be restored, just before every request ends with
    /// that error; called with nothing when all parts are restored again. In between, the loop
    /// tries to restore the part at every command and at an interval.
    std::function<void(const std::optional<Error>& missing)> on_service_changed = {};
    /// The worker falls asleep, begins to wake, or has woken.
    std::function<void(SleepPhase)> on_sleep_changed = {};
    /// Sends `weights.sleep`, with the reason if the worker could not wake; afterwards calls
    /// `sleep_refused` if the broker refused.
    std::function<void(const std::optional<Error>& why)> ask_to_sleep = {};
    /// Sends `weights.wake`; afterwards calls `set_asleep` or `wake_refused`.
    std::function<void()> ask_to_wake = {};
    /// Work between two steps, such as the load of an adapter. Called after each step with its
    /// duration, and with nothing after an attempt that computed nothing. Returns when to call it
    /// again even if no step runs; kNever for not before the next command.
    std::function<TimePoint(std::optional<Duration> step)> between_steps = {};
  };

  static constexpr TimePoint kNever{INT64_MAX};

  static constexpr Duration kRestoreInterval = std::chrono::seconds(2);
  /// `idle_limit`: as in SleepCycle.
  EngineLoop(Engine& engine, Hooks hooks, Duration restore_interval = kRestoreInterval,
             Duration idle_limit = Duration::zero())
      : engine_(&engine),
        hooks_(std::move(hooks)),
        restore_interval_(restore_interval),
        sleep_(idle_limit) {}

  /// Runs `command` between two steps.
  void post(Command command);

  /// The broker ordered that the worker sleeps or wakes, or permitted that it wakes. Called, as the
  /// next two, in the order in which the broker's messages arrive.
  void set_asleep(bool is_asleep);
  void wake_refused(Error why);
  void sleep_refused();
  /// Wakes a sleeping worker if requests wait that have to end soon.
  void wake_for_requests();

  /// Runs until `stop`, and returns after the step in progress. Errors: the device's fault, which
  /// is final; every request has ended with it.
  Result<void> run();
  void stop();

 private:
  std::vector<Command> take_commands(bool may_wait);
  bool step_once();
  void report_stopped();
  bool recover();
  void run_command(Command& command);
  bool note_arrival();
  void wait(std::unique_lock<std::mutex>& lock);
  std::optional<Duration> max_wait() const;
  void fall_asleep();
  void begin_waking();
  bool sleep_on();
  void sleep_when_idle();
  void back_to_sleep(const Error& why);
  void sleep_changed();
  void restore_failed(const Error& why);
  void set_missing(const std::optional<Error>& missing);
  void end_if(const std::optional<Error>& error);
  void end_all(const Error& error);
  void report_usage();
  void report_drained(bool busy);
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
  SleepCycle sleep_;
  std::optional<Error> missing_;  // why a part cannot be restored
  TimePoint next_served_;         // while busy
  TimePoint next_drained_;        // while busy
  TimePoint next_between_ = kNever;
};

}  // namespace leasehold
