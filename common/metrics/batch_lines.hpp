/// Numbers of batch lines for the page of metrics.
///
/// Threads: any.
#pragma once

#include <atomic>

#include "common/metrics/counters.hpp"

namespace leasehold::metrics {

struct BatchLines {
  std::atomic<std::uint64_t> waiting{0};  ///< Lines without a result, in batches that run.
  /// Lines that are submitted, or wait for their next attempt.
  std::atomic<std::uint64_t> running{0};
  Counter completed;  ///< Since the worker's start.
  Counter failed;     ///< Since the worker's start.
};

}  // namespace leasehold::metrics
