/// The time of a step at several lengths of context: what attention costs a decode row, a batch and
/// a chunk of a prompt.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

struct ContextBenchConfig {
  std::string model_path;
  std::string arithmetic = "int8";
  std::string simd;  ///< A SIMD path by name; empty: the widest of this CPU.
  std::uint32_t threads = 1;
  std::uint32_t rounds = 3;
  std::vector<std::uint32_t> contexts = {0, 64, 512, 3900};  ///< Position of a step's first row.
};

/// {"context": {"model", "threads", "arithmetic", "simd", "step_ms": {"1 row": {"0": …, "64": …},
/// "8 rows": …, "chunk of 256": …}}}: the shortest of the rounds. The 8 rows belong to 8 sequences,
/// the chunk to one. With one thread, times are its CPU time; with several, wall-clock time.
/// Errors: those of loading.
Result<nlohmann::json> measure_contexts(const ContextBenchConfig& config);

}  // namespace leasehold::bench
