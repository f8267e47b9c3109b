/// What adapters cost the steps that use them, and how long they take to load.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

struct AdapterBenchConfig {
  std::string model_path;
  std::string simd;  ///< A SIMD path by name; empty: the fastest of this CPU.
  std::uint32_t threads = 1;
  std::uint32_t rounds = 5;
  std::uint32_t prompt_rows = 512;
  std::string bin_dir;                    ///< Of the programs; not used by "steps".
  std::vector<std::string> measurements;  ///< Names from kAdapterMeasurements; empty: all.
  std::uint32_t calm_seconds = 10;        ///< Of streams without loads, then at least with loads.
};

/// A report has only what was measured.
inline constexpr const char* kAdapterMeasurements[] = {"steps", "loads", "turns", "clocks"};

/// {"adapters": {"model", "threads", "simd", "step_ms": {"base": {"1 row": …, "8 rows": …,
/// "32 rows": …, "prompt": …}, "one": …, "distinct": …, "narrow": …}, "ratio": {"one": …,
/// "distinct": …, "narrow": …}}}: the shortest step of the rounds, and the tokens per second of
/// each divided by those of the base model. "one": all rows use one adapter of rank 16 on all
/// weights, in F16; "distinct": each sequence has its own; "narrow": each has its own of rank 8 on
/// queries and values. A prompt belongs to one sequence, and other rows to one each. Steps of a
/// round follow one another, so that other load disturbs all of them. With one thread, times are
/// its CPU time; with several, wall-clock time. Int8 arithmetic. "loads", "turns" and "clocks" are
/// in adapter_life_bench.hpp. Errors: those of loading, and of System.
Result<nlohmann::json> measure_adapters(const AdapterBenchConfig& config);

/// Runs `steps` steps of a worker's engine with one text of the base model, on this thread.
/// `adapters` are loaded, and no text uses them; with 0, the engine takes none. Runs with different
/// `steps` differ by the cost of these steps. Errors: those of Engine::step.
Result<void> run_base_steps(const std::string& model_path, std::uint32_t steps,
                            std::uint32_t adapters);

}  // namespace leasehold::bench
