/// Measures adapters of real processes: how long they take to load, what that costs running
/// streams, requests that need evicted ones, and revocations of their leases.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tests/checks/bench/adapter_bench.hpp"

namespace leasehold::bench {

/// {"idle_ms", "beside_ms", "gap_us": {"calm": {…}, "loading": {…}, "p99_ratio"}}: medians of the
/// time from an operator's order to its reply, without other work and beside eight streams; times
/// between two tokens of a stream without and beside loads, one after another. Files are in the
/// page cache.
Result<nlohmann::json> measure_adapter_loads(const AdapterBenchConfig& config);

/// {"load_ms", "step_ms", "first_token_ms", "steps_beyond_load"}: 16 adapters are needed in turn,
/// with memory for eight, so that each request evicts one and loads its own. Medians of: a load
/// without other work, and the time from a submission to the first token; "step_ms" is the mean
/// time of a token of one text. The last is the time beyond a load in steps.
Result<nlohmann::json> measure_adapter_turns(const AdapterBenchConfig& config);

/// The keys of clocks_json, without "runs", for the leases of adapters under which texts run, and
/// "mean_unit_us" (see poll_cost.hpp).
Result<nlohmann::json> measure_adapter_clocks(const AdapterBenchConfig& config);

}  // namespace leasehold::bench
