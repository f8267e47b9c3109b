/// How much an outside index that never answers slows the streams of a worker down.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {

struct StalledIndexLoad {
  std::uint32_t streams = 8;
  std::uint32_t rounds = 3;  ///< Each round runs once without an index and once with one.
  Duration measured = std::chrono::seconds(5);
};

/// Starts two systems per round, one after the other: one as `config`, and one with an index that
/// accepts connections and never answers. The streams' requests are short, so that ids end all the
/// time. {"inter_token_us": {"without": {…}, "stalled": {…}}, "p50_ratio", "p99_ratio", "calls"}:
/// times between two tokens of a request, and the number of connections that the workers opened to
/// the index.
/// Errors: those of System::start and TenantPool; TimedOut if no worker called the index.
Result<nlohmann::json> measure_stalled_index(const SystemConfig& config,
                                             const StalledIndexLoad& load);

}  // namespace leasehold::bench
