/// The time of a step at several lengths of context, which shows the cost of attention for a decode
/// row, a batch and a chunk of a prompt.
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
  std::string simd;  ///< A SIMD path by name; empty: the fastest of this CPU.
  std::uint32_t threads = 1;
  std::string kv_type = "f16";
  std::string other_kv_type;  ///< Measured alternately with `kv_type`; empty: none.
  std::uint32_t rounds = 3;
  std::vector<std::uint32_t> contexts = {0, 64, 512, 3900};  ///< Position of a step's first row.
};

/// {"context": {"model", "threads", "arithmetic", "simd", "kv_type", "step_ms": {"1 row": {"0": …,
/// "64": …}, "8 rows": …, "chunk of 256": …}}}: the shortest of the rounds. With another KV type
/// the report also has "other": {"kv_type", "step_ms", "ratio"}; a ratio below 1 means that the
/// other type is faster. The 8 rows belong to 8 sequences, the chunk to one. With one thread, times
/// are its CPU time; with several, wall-clock time. Errors: those of loading; BadRequest for KV
/// types without a name.
Result<nlohmann::json> measure_contexts(const ContextBenchConfig& config);

}  // namespace leasehold::bench
