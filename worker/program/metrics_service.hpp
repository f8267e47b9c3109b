/// The metrics of the worker program, the server that publishes them, and the traces.
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
#include "worker/program/trace_service.hpp"

namespace leasehold {

class MetricsService {
 public:
  MetricsService(const Clock& clock, TraceService traces)
      : traces_(std::move(traces)), engine_(clock), page_(clock, [this] {
          return metrics_page(
              identity_, requests_, engine_.read(),
              {.log_lines_dropped = log_lines_dropped(), .spans = traces_.counts()});
        }) {}
  ~MetricsService() { io_.stop(); }

  RequestMetrics& requests() { return requests_; }
  EngineMetrics& engine() { return engine_; }
  TraceService& traces() { return traces_; }

  /// Serves `/metrics` at the address of `--metrics`, if given. Errors: those of
  /// http::PageServer::create. Clients may scrape at any rate, so the page is built at most once a
  /// second, on a thread with a low priority.
  Result<void> open(const WorkerOptions& options, const OpenedModel& model);

 private:
  TraceService traces_;
  RequestMetrics requests_;
  EngineMetrics engine_;
  WorkerIdentity identity_;
  metrics::Recent<std::string> page_;
  IoThread io_;
  std::unique_ptr<http::PageServer> server_;
};

}  // namespace leasehold
