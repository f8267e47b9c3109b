#include "tests/checks/bench/recover_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/model/config.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "kernels/op_args.hpp"
#include "tests/checks/bench/deaths_of_text.hpp"
#include "tests/checks/bench/engine_losses.hpp"
#include "tests/checks/bench/rebind_modes.hpp"
#include "tests/checks/bench/report.hpp"

namespace leasehold::bench {
namespace {

nlohmann::json summary(const std::vector<double>& values) {
  return to_json(distribution_of(values));
}

double ratio(const std::vector<double>& of, const std::vector<double>& to) {
  return median_of(of) / median_of(to);
}

nlohmann::json adopted_json(const AdoptedDeaths& deaths) {
  nlohmann::json stages;
  std::string costliest;
  for (const auto& [stage, values] : deaths.stages_ms) {
    stages[stage] = summary(values);
    if (costliest.empty() || median_of(values) > median_of(deaths.stages_ms.at(costliest)))
      costliest = stage;
  }
  return {{"kill_to_token_ms", summary(deaths.kill_to_token_ms)},
          {"first_text_ms", summary(deaths.first_text_ms)},
          {"last_text_ms", summary(deaths.last_text_ms)},
          {"stages_ms", std::move(stages)},
          {"costliest_stage", costliest}};
}

nlohmann::json length_json(const RebindTimes& times) {
  return {{"step_ms", summary(times.step_ms)},
          {"reprefill_ms", summary(times.reprefill_ms)},
          {"checkpoint_ms", summary(times.checkpoint_ms)},
          {"preemptive_ms", summary(times.preemptive_ms)},
          {"worker_ms", summary(times.worker_ms)},
          {"copy_ms", summary(times.copy_ms)},
          {"adopt_ms", summary(times.adopt_ms)},
          {"failover_ms", summary(times.failover_ms)},
          {"failover_gap_ms", summary(times.failover_gap_ms)},
          {"handover_ms", summary(times.handover_ms)}};
}

/// The largest ratio, over all lengths, of the median gap to the bound: two median steps and the
/// median handover.
double failover_gap_of_bound(const RebindTimesByLength& by_length) {
  double most = 0;
  for (const auto& [length, times] : by_length) {
    const double bound = 2 * median_of(times.step_ms) + median_of(times.handover_ms);
    most = std::max(most, median_of(times.failover_gap_ms) / bound);
  }
  return most;
}

/// Compares latencies in steps of the text, so that the attention of a longer text does not count
/// as latency.
double growth(const RebindTimesByLength& by_length, std::vector<double> RebindTimes::* mode) {
  const auto steps = [mode](const RebindTimes& times) {
    return median_of(times.*mode) / median_of(times.step_ms);
  };
  return steps(by_length.rbegin()->second) / steps(by_length.begin()->second);
}

nlohmann::json rebind_json(const RebindTimesByLength& by_length) {
  nlohmann::json lengths;
  for (const auto& [length, times] : by_length)
    lengths[std::to_string(length)] = length_json(times);
  return {{"lengths", std::move(lengths)},
          {"checkpoint_growth", growth(by_length, &RebindTimes::checkpoint_ms)},
          {"preemptive_growth", growth(by_length, &RebindTimes::preemptive_ms)},
          {"reprefill_growth", growth(by_length, &RebindTimes::reprefill_ms)},
          {"failover_gap_of_bound", failover_gap_of_bound(by_length)}};
}

}  // namespace

Result<nlohmann::json> measure_recover(const RecoverConfig& config) {
  const GgufFile file = TRY(GgufFile::open(config.model_path));
  const ModelConfig model = TRY(read_config(file));
  const DeathsConfig deaths{.bin_dir = config.bin_dir,
                            .model_path = config.model_path,
                            .arithmetic = config.arithmetic,
                            .threads = config.threads,
                            .texts = config.texts,
                            .prompt_tokens = std::min(config.prompt_tokens, model.n_context / 2),
                            .rounds = config.rounds,
                            .slow_motion_us = config.slow_motion_us};
  const AdoptedDeaths adopted = TRY(measure_adopted_deaths(deaths));
  const auto default_client = TRY(measure_default_client_ms(deaths));
  const ColdDeaths cold = TRY(measure_cold_deaths(deaths));
  const EngineLosses engine = TRY(measure_engine_losses(deaths));
  const KvLayout kv{
      .n_layers = model.n_layers, .n_kv_heads = model.n_kv_heads, .head_dim = model.head_dim};
  const RebindModes modes = TRY(
      measure_rebind_modes({.system = system_config(deaths),
                            .context = model.n_context,
                            .kv_bytes_per_token = kv.block_size_bytes() / KvLayout::kBlockTokens,
                            .longest = config.longest,
                            .rounds = config.rounds,
                            .lifetimes = config.lifetimes}));
  return nlohmann::json{
      {"recover",
       {{"model", model.name},
        {"arithmetic", config.arithmetic},
        {"texts", deaths.texts},
        {"prompt_tokens", deaths.prompt_tokens},
        {"adopted", adopted_json(adopted)},
        {"default_client", {{"kill_to_token_ms", summary(default_client)}}},
        {"cold",
         {{"kill_to_ready_ms", summary(cold.kill_to_ready_ms)},
          {"kill_to_token_ms", summary(cold.kill_to_token_ms)}}},
        {"cold_to_adopted", ratio(cold.kill_to_ready_ms, adopted.kill_to_token_ms)},
        {"reprefill_to_adopted", ratio(cold.kill_to_token_ms, adopted.kill_to_token_ms)},
        {"rebind", rebind_json(modes.by_length)},
        {"engine",
         {{"retained_ms", summary(engine.retained_ms)},
          {"reloaded_ms", summary(engine.reloaded_ms)}}},
        {"preemptive",
         {{"lifetimes", modes.lifetimes}, {"longest_gap_steps", modes.longest_gap_steps}}},
        {"survivor",
         {{"missed_steps", modes.survivor_missed_steps}, {"steps", modes.survivor_steps}}}}}};
}

}  // namespace leasehold::bench
