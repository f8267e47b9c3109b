/// The metrics of a worker as text. The page also has vLLM's metric names, so that dashboards for
/// vLLM work; source of the names: https://docs.vllm.ai/en/stable/usage/metrics/.
#pragma once

#include <optional>
#include <string>

#include "worker/metrics/engine_metrics.hpp"
#include "worker/metrics/request_metrics.hpp"
#include "worker/trace/span.hpp"

namespace leasehold {

struct WorkerIdentity {
  std::string worker;
  std::string model;
  std::uint32_t tokens_per_block = 16;
};

/// The log lines and spans that were dropped.
struct ObservationCounts {
  std::uint64_t log_lines_dropped = 0;
  std::optional<SpanCounts> spans = {};  ///< None: no traces are exported.
};

std::string metrics_page(const WorkerIdentity& identity, const RequestMetrics& requests,
                         const EngineSnapshot& engine, const ObservationCounts& observed);

}  // namespace leasehold
