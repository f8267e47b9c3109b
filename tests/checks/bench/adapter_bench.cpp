#include "tests/checks/bench/adapter_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/expects.hpp"
#include "tests/checks/bench/adapter_life_bench.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/local_model/local_model.hpp"
#include "tests/support/engine_rig.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kSequences = 32;
/// Positions before a decoded row, so that attention takes its usual part of a step.
constexpr std::uint32_t kContext = 64;
constexpr std::uint32_t kRank = 16;
constexpr std::uint32_t kNarrowRank = 8;

struct AdapterStep {
  const char* name;
  std::uint32_t sequences;
  bool is_prompt = false;
};
constexpr AdapterStep kAdapterSteps[] = {
    {"1 row", 1}, {"8 rows", 8}, {"32 rows", kSequences}, {"prompt", 1, true}};

/// Which adapter sequence s uses: first + s · step.
struct Use {
  const char* name;
  std::uint32_t first;
  std::uint32_t step;
};
constexpr const char* kBase = "base";
constexpr Use kUses[] = {{"one", 0, 0}, {"distinct", 0, 1}, {"narrow", kSequences, 1}};

std::vector<LocalAdapter> adapters() {
  std::vector<LocalAdapter> all;
  for (std::uint64_t s = 0; s < kSequences; ++s) all.push_back({.rank = kRank, .seed = s + 1});
  for (std::uint64_t s = 0; s < kSequences; ++s)
    all.push_back({.rank = kNarrowRank,
                   .targets = {AdapterTarget::Query, AdapterTarget::Value},
                   .seed = kSequences + s + 1});
  return all;
}

/// Null: the base model.
void choose(LocalModel& model, const Use* use) {
  for (std::uint32_t s = 0; s < kSequences; ++s)
    model.use_adapter(s, use != nullptr ? std::optional(use->first + s * use->step) : std::nullopt);
}

Result<double> step_ms(LocalModel& model, const AdapterStep& shape,
                       const AdapterBenchConfig& config) {
  const std::uint32_t position = shape.is_prompt ? 0 : kContext;
  for (std::uint32_t s = 0; s < shape.sequences; ++s) model.restart(s, position);
  const auto rows = text_rows(shape.sequences, shape.is_prompt ? config.prompt_rows : 1);
  const double begin_ns = work_time_ns(config.threads);
  TRY(model.forward(rows));
  return (work_time_ns(config.threads) - begin_ns) / 1e6;
}

/// Runs a step of each use, the base model's among them.
Result<void> add_steps(LocalModel& model, const AdapterStep& shape,
                       const AdapterBenchConfig& config, Samples& samples) {
  const auto add = [&](const char* name, const Use* use) -> Result<void> {
    choose(model, use);
    samples[fmt::format("step_ms.{}.{}", name, shape.name)].push_back(
        TRY(step_ms(model, shape, config)));
    return {};
  };
  TRY(add(kBase, nullptr));
  for (const Use& use : kUses) TRY(add(use.name, &use));
  return {};
}

Result<nlohmann::json> measure_adapter_steps(const AdapterBenchConfig& config) {
  const SimdPath simd = simd_path_or_best(config.simd);
  const auto model = TRY(LocalModel::load({.model_path = config.model_path,
                                           .simd = simd,
                                           .threads = config.threads,
                                           .arithmetic = Arithmetic::Int8,
                                           .max_rows = std::max(config.prompt_rows, kSequences),
                                           .sequences = kSequences,
                                           .positions = std::max(config.prompt_rows, kContext + 1),
                                           .adapters = adapters()}));
  Samples samples;
  for (std::uint32_t round = 0; round < config.rounds; ++round)
    for (const AdapterStep& shape : kAdapterSteps) TRY(add_steps(*model, shape, config, samples));
  nlohmann::json json = figures_of(samples, Statistic::Least);
  for (const AdapterStep& shape : kAdapterSteps)
    for (const Use& use : kUses) {
      const FigureRow ratio{fmt::format("ratio.{}.{}", use.name, shape.name), Statistic::Least,
                            fmt::format("step_ms.{}.{}", kBase, shape.name),
                            fmt::format("step_ms.{}.{}", use.name, shape.name)};
      add_figures(json, samples, {&ratio, 1});
    }
  json.update({{"model", model->config().name}, {"threads", config.threads}, {"simd", name(simd)}});
  return json;
}

struct AdapterMeasurement {
  std::string_view name;
  Result<nlohmann::json> (*measure)(const AdapterBenchConfig& config);
};
constexpr AdapterMeasurement kOfProcesses[] = {{"loads", measure_adapter_loads},
                                               {"turns", measure_adapter_turns},
                                               {"clocks", measure_adapter_clocks}};

bool is_wanted(const AdapterBenchConfig& config, std::string_view measurement) {
  return config.measurements.empty() ||
         std::ranges::find(config.measurements, measurement) != config.measurements.end();
}

}  // namespace

Result<nlohmann::json> measure_adapters(const AdapterBenchConfig& config) {
  nlohmann::json json = nlohmann::json::object();
  if (is_wanted(config, "steps")) json = TRY(measure_adapter_steps(config));
  for (const auto& [name, measure] : kOfProcesses)
    if (is_wanted(config, name)) json[std::string(name)] = TRY(measure(config));
  return nlohmann::json{{"adapters", std::move(json)}};
}

Result<void> run_base_steps(const std::string& model_path, std::uint32_t steps,
                            std::uint32_t adapters) {
  testing::EngineRig rig({.model_path = model_path,
                          .arithmetic = Arithmetic::Int8,
                          .limits = {.max_adapter_rank = adapters > 0 ? kNarrowRank : 0}});
  for (std::uint32_t i = 0; i < adapters; ++i)
    rig.load_adapter(fmt::format("a{}", i), i, kNarrowRank);
  PromptRequest request = rig.request("t", rig.grant("t"), "r", {20, 30}, steps + 1);
  request.sampling.ignore_eos = true;
  TRY(rig.submit(request));
  for (std::uint32_t i = 0; i < steps; ++i) TRY(rig.step());
  ensures(rig.engine().has_work(), "the text lasts for all steps");
  return {};
}

}  // namespace leasehold::bench
