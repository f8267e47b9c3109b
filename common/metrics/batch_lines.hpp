/// Numbers of batch lines for the page of metrics.
///
/// Threads: any.
#pragma once

#include <atomic>

#include "common/metrics/counters.hpp"

namespace leasehold::metrics {

struct BatchLines {
  std::atomic<std::uint64_t> waiting{0};  ///< Without a result, in batches that run.
  std::atomic<std::uint64_t> running{0};  ///< Submitted, or waiting for their next attempt.
  Counter completed;                      ///< Since the worker's start.
  Counter failed;                         ///< Since the worker's start.
};

}  // namespace leasehold::metrics
