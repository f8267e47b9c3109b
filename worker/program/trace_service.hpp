/// The traces of the worker program: nothing without `--otlp-endpoint`.
///
/// Threads: `tracing` and `counts` from any thread; the rest on the main thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "worker/options.hpp"
#include "worker/trace/span_exporter.hpp"
#include "worker/trace/tracing.hpp"

namespace leasehold {

class TraceService {
 public:
  TraceService(const WorkerOptions& options, const std::string& model) {
    if (!options.otlp) return;
    exporter_ = std::make_unique<SpanExporter>(SpanExporterConfig{
        .url = *options.otlp,
        .resource = {.service_name = options.otlp_service_name, .instance = options.name}});
    tracing_.emplace(
        options.otlp_sample, model,
        [exporter = exporter_.get()](std::vector<Span> spans) { exporter->add(std::move(spans)); });
  }

  /// Starts to send. Errors: SystemError when the system refuses the thread.
  Result<void> start() { return exporter_ ? exporter_->start() : Result<void>{}; }
  /// Null: no spans.
  const Tracing* tracing() const { return tracing_ ? &*tracing_ : nullptr; }
  /// Nothing without `--otlp-endpoint`.
  std::optional<SpanCounts> counts() const {
    return exporter_ ? std::optional(exporter_->counts()) : std::nullopt;
  }
  /// Calls SpanExporter::stop.
  void stop(std::chrono::milliseconds timeout) {
    if (exporter_) exporter_->stop(timeout);
  }

 private:
  std::unique_ptr<SpanExporter> exporter_;
  std::optional<Tracing> tracing_;
};

}  // namespace leasehold
