#include "tests/checks/bench/engine_bench.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "tests/checks/bench/engine_figures.hpp"
#include "tests/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kDecodedTokens = 3;

FigureSteps steps_of(const EngineBenchConfig& config) {
  return {.prompt_tokens = config.prompt_tokens,
          .decoded_tokens = kDecodedTokens,
          .now_ns = config.threads == 1 ? thread_time_ns : wall_time_ns};
}

Result<std::unique_ptr<LocalModel>> load(const EngineBenchConfig& config, Arithmetic arithmetic) {
  LocalOptions options = options_for(steps_of(config));
  options.model_path = config.model_path;
  options.threads = config.threads;
  options.arithmetic = arithmetic;
  return LocalModel::load(std::move(options));
}

nlohmann::json with_batch_gain(Figures medians) {
  medians["batch_gain"] = medians["batch_8"] / medians["decode"];
  return medians;
}

}  // namespace

Result<nlohmann::json> measure_engine(const EngineBenchConfig& config) {
  const auto f32 = TRY(load(config, Arithmetic::F32));
  const auto int8 = TRY(load(config, Arithmetic::Int8));
  const FigureSteps steps = steps_of(config);
  std::vector<Figures> of_f32;
  std::vector<Figures> of_int8;
  std::vector<Figures> ratios;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    of_f32.push_back(TRY(measure_figures(*f32, steps)));
    of_int8.push_back(TRY(measure_figures(*int8, steps)));
    ratios.push_back(ratios_of(of_int8.back(), of_f32.back()));
  }
  return nlohmann::json{{"engine",
                         {{"model", f32->config().name},
                          {"threads", config.threads},
                          {"f32", with_batch_gain(medians_of(of_f32))},
                          {"int8", with_batch_gain(medians_of(of_int8))},
                          {"int8_to_f32", medians_of(ratios)}}}};
}

}  // namespace leasehold::bench
