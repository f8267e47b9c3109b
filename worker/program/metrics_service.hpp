/// The metrics of the worker program, and the server that publishes them.
///
/// Threads: `open` from the main thread; `requests` and `engine` as documented by their types.
#pragma once

#include <memory>

#include "common/log.hpp"
#include "common/metrics/recent.hpp"
#include "ipc/http/page_server.hpp"
#include "worker/metrics/metrics_page.hpp"
#include "worker/options.hpp"
#include "worker/program/io_thread.hpp"
#include "worker/program/opened_model.hpp"

namespace leasehold {

class MetricsService {
 public:
  explicit MetricsService(const Clock& clock)
      : engine_(clock), page_(clock, [this] {
          return metrics_page(identity_, requests_, engine_.read(), log_lines_dropped());
        }) {}
  ~MetricsService() { io_.stop(); }

  RequestMetrics& requests() { return requests_; }
  EngineMetrics& engine() { return engine_; }

  /// Serves `/metrics` at the address of `--metrics`, if given. Errors: those of
  /// http::PageServer::create. Clients may scrape at any rate, so the page is built at most once a
  /// second, on a thread with a low priority.
  Result<void> open(const WorkerOptions& options, const OpenedModel& model);

 private:
  RequestMetrics requests_;
  EngineMetrics engine_;
  WorkerIdentity identity_;
  metrics::Recent<std::string> page_;
  IoThread io_;
  std::unique_ptr<http::PageServer> server_;
};

}  // namespace leasehold
