/// Measures how a long prompt and running streams slow each other down, what a prefix hit saves,
/// and how time is shared.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {

/// Names of measurements. A report has only what was measured.
inline constexpr const char* kServeMeasurements[] = {"streams", "prefix", "stalled_index",
                                                     "shares",  "tick",   "requests"};

struct ServeConfig {
  std::string bin_dir;  ///< Directory of leasehold-broker and leasehold-worker.
  std::string model_path;
  std::string shares_model_path;          ///< Always used by "shares"; empty: model_path.
  std::string arithmetic = "auto";        ///< The worker's --arithmetic.
  std::vector<std::string> measurements;  ///< Names from kServeMeasurements; empty: all.
  std::uint32_t streams = 8;              ///< Tenants that generate all the time.
  std::uint32_t prompt_tokens = 4096;     ///< Prompt of the tenant that arrives.
  std::uint32_t rounds = 3;  ///< Each round has the prompt alone, calm streams, and both.
  Duration calm = std::chrono::seconds(10);
};

/// {"serve": {"arithmetic" (the one that ran "streams" or "prefix"), "streams": {"inter_token_us":
/// {"calm": {…}, "long_prompt": {…}, "p99_ratio"}, "first_token_s": {"alone", "beside_streams",
/// "ratio"}, …}, "prefix_hit": {…}, "stalled_index": {…}, "shares": {…}, "tick": (measure_tick),
/// "requests": {…}}}: "streams" has the times between two tokens of a stream, with and without the
/// prompt, and medians of the time to the prompt's first token. One core is left to the clients.
/// Errors: those of System::start and TenantPool.
Result<nlohmann::json> measure_serve(const ServeConfig& config);

/// Measures how much of the time to the first token a cached beginning of a prompt saves.
///
/// {"prompt_tokens", "hit_share", "cold_s", "warm_s", "shared_alone_s", "one_token_s",
/// "saved_share", "of_ideal", "of_computed_rows"}. Times are medians of the time to the first token
/// of four prompts: a prompt of new text; a prompt that shares 3/4 of that text; the shared part
/// alone, as new text; and a prompt of one token.
///
/// `of_ideal` compares with a prompt whose time is proportional to its blocks: it is the share of
/// saved time divided by the share of cached blocks. Two things keep it below 1: the part of a
/// request's time that is not spent on rows, and attention, which makes the first rows of a prompt
/// cheaper than the last. `of_computed_rows` excludes both: it is the saved time divided by the
/// time that computing the cached rows takes alone.
Result<nlohmann::json> measure_prefix_hits(System& system);

/// Measures how much an external index that never answers slows the streams of a worker down.
///
/// Starts two systems per round, one after the other: one as `config`, and one with an index that
/// accepts connections and never answers. The streams' requests are short, so that ids end all the
/// time. {"inter_token_us": {"without": {…}, "stalled": {…}}, "p50_ratio", "p99_ratio", "calls"}:
/// times between two tokens of a request, and the number of connections that the workers opened to
/// the index. Errors: TimedOut if no worker called the index.
Result<nlohmann::json> measure_stalled_index(const SystemConfig& config, std::uint32_t n_streams,
                                             std::uint32_t rounds);

/// Measures how a worker's time is shared by tenants that always have work.
///
/// {"served": […], "jain_index", "widest_ratio"}: the tokens that `tenant.list` counts, divided by
/// weight, of four tenants with the weights 1, 1, 2 and 4 and with prompts of different lengths.
Result<nlohmann::json> measure_served_shares(const std::string& bin_dir,
                                             const std::string& model_path);

/// Measures what an operator does with requests, and checks that it changes no other text.
///
/// {"listed", "workers", "list_ms": {…}, "cancel_ms": {…}, "slow_cancel_ms": {…},
/// "slow_cancel_over_unit_ms", "changed_texts"}: the time in which `brokerctl requests` reads the
/// requests of three workers, where nearly all wait; and the time from the call that cancels one of
/// four texts until its client has read the end. "slow" is with units of 5 ms, and
/// slow_cancel_over_unit_ms is its p99 minus one unit. "changed_texts" counts the texts beside a
/// cancelled one that differ from those of an undisturbed run. Errors: those of System::start;
/// TimedOut.
Result<nlohmann::json> measure_requests(const std::string& bin_dir, const std::string& model_path);

struct TickLoad {
  std::uint32_t tenants = 50;
  std::uint32_t running = 64;
  std::uint32_t waiting = 1000;
  std::uint32_t idle_leases = 0;  ///< Each of a tenant of its own, without requests.
  std::uint32_t ticks = 2000;
};

/// CPU times in µs of a tick of the scheduler without an engine: "schedule" is `admit`, `plan` and
/// what the engine then takes; "commit" is the commits, which hash full blocks, and the events.
/// Each tick ends some texts of 1 to 128 tokens, which waiting requests replace. As many new
/// requests arrive outside the measured time. No two texts are equal.
Samples measure_tick_us(const TickLoad& load);

/// {"us", "idle_leases_ratio", "waiting_ratio", "schedule_over_commit"}: the distribution of the
/// CPU times of a tick; the median of "schedule" with 3000 idle leases, and with eight times as
/// many waiting requests, to that without; and the median of "schedule" to that of "commit".
nlohmann::json measure_tick();

}  // namespace leasehold::bench
