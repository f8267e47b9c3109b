/// A worker that serves: its engine runs, and it answers the broker and the tenants until it stops.
///
/// Threads: `start`, `run` and destruction on the main thread; the handlers of the broker and of
/// signals on the I/O thread, which gets the object once all servers are open. Lifetime: `loaded`
/// outlives it.
#pragma once

#include <memory>

#include "worker/lease/deadline_watcher.hpp"
#include "worker/lease/step_reporter.hpp"
#include "worker/program/http_service.hpp"
#include "worker/program/reload.hpp"
#include "worker/program/request_directory.hpp"
#include "worker/program/request_log.hpp"
#include "worker/program/service_state.hpp"
#include "worker/program/serving.hpp"
#include "worker/program/spill_service.hpp"
#include "worker/program/stages/loaded_worker.hpp"
#include "worker/program/worker_stop.hpp"

namespace leasehold {

class ReadyWorker {
 public:
  /// Opens the servers and announces the worker to the broker. SIGHUP calls `reload`. Errors: those
  /// of DeadlineWatcher::start, HttpService::open, MetricsService::open and
  /// BrokerSession::announce_ready.
  static Result<std::unique_ptr<ReadyWorker>> start(LoadedWorker& loaded, ReloadOptions reload);

  ReadyWorker(const ReadyWorker&) = delete;
  ReadyWorker& operator=(const ReadyWorker&) = delete;
  ~ReadyWorker() { opened_->stop_io(); }

  /// Runs until a signal, a lost broker or a device fault stops the engine, then ends all requests
  /// and closes the servers. Errors: those of run_worker after its start-up. Call once.
  Result<void> run();

 private:
  ReadyWorker(LoadedWorker& loaded, ReloadOptions reload);
  StepReporter::Dependencies step_reporter_dependencies();
  EngineLoop::Hooks loop_hooks();
  Serving::Dependencies serving_dependencies();
  WorkerStop::Dependencies stop_dependencies();
  std::optional<AdapterCounts> adapter_counts();
  void ask_to_sleep(const std::optional<Error>& why);
  void ask_to_wake();
  Result<control::Payload> set_asleep(const control::Json& params);
  Result<void> open_servers();
  void take_over_broker();
  void connection_changed(bool disconnected);
  void stop(int signal);
  Result<void> announce();
  void end_requests();

  OpenedWorker* opened_;
  AttachedWorker* attached_;
  LoadedWorker* loaded_;
  ReloadOptions reload_;
  RequestLog request_log_;
  ServiceState service_;
  StepReporter step_reporter_;
  EngineLoop loop_;
  std::unique_ptr<SpillService> spill_;  // null: nothing is spilled
  Serving serving_;
  RequestDirectory requests_;
  HttpService http_;
  WorkerStop stop_;
  std::unique_ptr<DeadlineWatcher> watcher_;  // null once the engine has stopped
};

}  // namespace leasehold
