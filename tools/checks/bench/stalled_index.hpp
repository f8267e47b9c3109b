/// Measures what an external prefix index that never answers costs the streams of a worker.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "tools/checks/bench/system.hpp"

namespace leasehold::bench {

struct StalledIndexLoad {
  std::uint32_t streams = 8;
  std::uint32_t rounds = 3;  ///< Each round measures without an index and with one.
  Duration measured = std::chrono::seconds(5);
};

/// Starts two systems per round in sequence: one as in `config`, and one with an index that accepts
/// connections and never answers. The requests are short, so that requests end all the time.
/// {"inter_token_us": {"without": {…}, "stalled": {…}}, "p50_ratio", "p99_ratio", "calls"}: times
/// between two tokens of a request, and the connections that the workers opened to the index.
/// Errors: those of System::start and TenantPool; TimedOut when no worker
/// called the index.
Result<nlohmann::json> measure_stalled_index(const SystemConfig& config,
                                             const StalledIndexLoad& load);

}  // namespace leasehold::bench
