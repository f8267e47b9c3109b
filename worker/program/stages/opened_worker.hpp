/// What a worker opens before it calls its broker: files, sockets and threads.
///
/// These steps are cheap, so that an invalid path fails before the weights are loaded.
///
/// Lifetime: outlives the later stages (program/main.cpp), which call `stop_io` before they are
/// destroyed. The tenants' socket file is removed with it. Threads: main, except as each member
/// says.
#pragma once

#include <memory>

#include "ipc/control/transport/socket_file.hpp"
#include "worker/engine/running_requests.hpp"
#include "worker/engine/worker_gates.hpp"
#include "worker/index_sync/kv_index_sync.hpp"
#include "worker/program/draft_model.hpp"
#include "worker/program/io_thread.hpp"
#include "worker/program/metrics_service.hpp"
#include "worker/program/model_digest.hpp"
#include "worker/program/opened_model.hpp"
#include "worker/program/step_log.hpp"
#include "worker/program/worker_signals.hpp"
#include "worker/serve/tenant_server.hpp"

namespace leasehold {

struct OpenedWorker {
  /// Errors: those of the files, of listening on the tenants' socket, and of starting threads.
  static Result<std::unique_ptr<OpenedWorker>> open(const WorkerOptions& options);

  OpenedWorker(const OpenedWorker&) = delete;
  OpenedWorker& operator=(const OpenedWorker&) = delete;
  ~OpenedWorker();

  /// Ends the threads of `io` and `tenant_io`, whose handlers use the later stages.
  void stop_io();

  WorkerOptions options;  ///< A reload changes it on the I/O thread.
  OpenedModel model;
  SystemClock clock;
  MetricsService metrics{clock, TraceService(options, model.config.name)};
  UnitProbe probe{options.slow_motion};
  RunningRequests running_requests;
  IoThread io;         ///< Runs the broker's socket: the I/O thread.
  IoThread tenant_io;  ///< Runs the tenants' sockets.
  WorkerSignals signals{io.context()};
  std::unique_ptr<ModelDigest> digest;
  std::unique_ptr<DraftModel> draft;      ///< Null without --draft-model.
  UniqueFd adapters;                      ///< The directory of --adapters, if any.
  std::unique_ptr<KvIndexSync> kv_index;  ///< Null without --kv-index-url.
  /// For tenants; no file until it listens.
  struct Listener {
    TenantServer::Acceptor acceptor;
    control::SocketFile file{""};
  } listener{TenantServer::Acceptor(tenant_io.context())};
  StepLog step_log;

 private:
  OpenedWorker(const WorkerOptions& given, OpenedModel opened)
      : options(given), model(std::move(opened)) {}
  Result<void> open_files();
  Result<void> open_adapters();
};

}  // namespace leasehold
