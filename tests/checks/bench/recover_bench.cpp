#include "tests/checks/bench/recover_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/model/config.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "kernels/model/kv_type.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

std::string place(std::uint32_t length, std::string_view mode) {
  return fmt::format("rebind.lengths.{}.{}_ms", length, mode);
}

/// The largest ratio, over all lengths, of the median gap to the bound: two median steps and the
/// median handover.
double failover_gap_of_bound(const Samples& samples, const std::vector<std::uint32_t>& lengths) {
  double most = 0;
  for (const std::uint32_t length : lengths) {
    const double bound = 2 * figure_of(samples, place(length, "step")) +
                         figure_of(samples, place(length, "handover"));
    most = std::max(most, figure_of(samples, place(length, "failover_gap")) / bound);
  }
  return most;
}

/// Compares latencies in steps of the text, so that the attention of a longer text does not count
/// as latency.
double growth(const Samples& samples, const std::vector<std::uint32_t>& lengths,
              std::string_view mode) {
  const auto steps = [&](std::uint32_t length) {
    return figure_of(samples, place(length, mode)) / figure_of(samples, place(length, "step"));
  };
  return steps(lengths.back()) / steps(lengths.front());
}

std::string costliest_stage(const Samples& samples) {
  constexpr std::string_view kStages = "adopted.stages_ms.";
  std::string costliest;
  for (const auto& [name, values] : samples)
    if (name.starts_with(kStages) &&
        (costliest.empty() || figure_of(samples, name) > figure_of(samples, costliest)))
      costliest = name;
  return costliest.substr(kStages.size());
}

Json report_of(const Samples& samples, const RebindModes& modes) {
  const FigureRow ratios[] = {
      {"cold_to_adopted", Statistic::Median, "cold.kill_to_ready_ms", "adopted.kill_to_token_ms"},
      {"reprefill_to_adopted", Statistic::Median, "cold.kill_to_token_ms",
       "adopted.kill_to_token_ms"}};
  Json json = figures_of(samples, Statistic::Distribution);
  add_figures(json, samples, ratios);
  json["adopted"]["costliest_stage"] = costliest_stage(samples);
  for (const std::string mode : {"checkpoint", "preemptive", "reprefill"})
    json["rebind"][mode + "_growth"] = growth(samples, modes.lengths, mode);
  json["rebind"]["failover_gap_of_bound"] = failover_gap_of_bound(samples, modes.lengths);
  json["preemptive"] = {{"lifetimes", modes.lifetimes},
                        {"longest_gap_steps", modes.longest_gap_steps}};
  json["survivor"] = {{"missed_steps", modes.survivor.missed}, {"steps", modes.survivor.taken}};
  return json;
}

}  // namespace

SystemConfig system_config(const RecoverConfig& config) {
  return {.bin_dir = config.bin_dir,
          .model_path = config.model_path,
          .threads = config.threads,
          .capacity = "1GiB",
          .worker_options = {"--arithmetic", config.arithmetic, "--slow-motion-us",
                             std::to_string(config.slow_motion_us)},
          .journal = true};  // keeps the tenants for a broker that starts cold
}

Result<std::unique_ptr<RebindingText>> start_text(System& system, std::uint32_t number,
                                                  std::uint32_t prompt_tokens,
                                                  const client::RetryPolicy& retry) {
  const std::string tenant = fmt::format("text-{}", number);
  TRY(system.admit(tenant));
  return std::make_unique<RebindingText>(
      RebindingTextConfig{.broker_socket = system.broker_socket(),
                          .tenant = tenant,
                          .prompt_tokens = prompt_tokens,
                          .max_tokens = 1u << 20,
                          .retry = retry});
}

Result<Json> measure_recover(const RecoverConfig& wanted) {
  const GgufFile file = TRY(GgufFile::open(wanted.model_path));
  const ModelConfig model = TRY(read_config(file));
  RecoverConfig config = wanted;
  config.prompt_tokens = std::min(config.prompt_tokens, model.n_context / 2);
  const KvLayout kv = kv_layout(model, KvType::F16);
  Samples samples;
  TRY(measure_deaths_of_texts(config, samples));
  TRY(measure_engine_losses(config, samples));
  const RebindModes modes = TRY(measure_rebind_modes(
      config, model.n_context, kv.block_size_bytes() / KvLayout::kBlockTokens, samples));
  Json json = report_of(samples, modes);
  json.update({{"model", model.name},
               {"arithmetic", config.arithmetic},
               {"texts", config.texts},
               {"prompt_tokens", config.prompt_tokens}});
  return Json{{"recover", std::move(json)}};
}

}  // namespace leasehold::bench
