#include "tests/checks/bench/context_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/model/kv_type.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::bench {
namespace {

struct StepShape {
  const char* name;
  std::uint32_t sequences;
  std::uint32_t rows_each;
};
constexpr StepShape kShapes[] = {{"1 row", 1, 1}, {"8 rows", 8, 1}, {"chunk of 256", 1, 256}};
constexpr std::uint32_t kContextSequences = 8;
constexpr std::uint32_t kChunkRows = 256;

Result<double> step_ms(LocalModel& model, const StepShape& shape, std::uint32_t context,
                       std::uint32_t threads) {
  for (std::uint32_t s = 0; s < shape.sequences; ++s) model.restart(s, context);
  const std::vector<LocalRow> rows = text_rows(shape.sequences, shape.rows_each);
  const double begin_ns = work_time_ns(threads);
  TRY(model.forward(rows));
  return (work_time_ns(threads) - begin_ns) / 1e6;
}

Result<std::unique_ptr<LocalModel>> load(const ContextBenchConfig& config,
                                         const std::string& kv_type) {
  const std::optional<KvType> type = kv_type_from_name(kv_type);
  if (!type) return fail(Errc::BadRequest, "there is no KV type " + kv_type + "; use f16 or q8_0");
  const std::uint32_t longest =
      config.contexts.empty() ? 0 : *std::ranges::max_element(config.contexts);
  return LocalModel::load(
      {.model_path = config.model_path,
       .simd = simd_path_or_best(config.simd),
       .threads = config.threads,
       .kv_type = *type,
       .arithmetic = config.arithmetic == "int8" ? Arithmetic::Int8 : Arithmetic::F32,
       .max_rows = kChunkRows,
       .sequences = kContextSequences,
       .positions = longest + kChunkRows});
}

/// Measures one step; its times have the name `of` with the shape and the context.
Result<void> add_step(const std::string& of, LocalModel& model, const StepShape& shape,
                      const ContextBenchConfig& config, std::uint32_t context, Samples& samples) {
  samples[fmt::format("{}.{}.{}", of, shape.name, context)].push_back(
      TRY(step_ms(model, shape, context, config.threads)));
  return {};
}

}  // namespace

Result<nlohmann::json> measure_contexts(const ContextBenchConfig& config) {
  const auto first = TRY(load(config, config.kv_type));
  std::unique_ptr<LocalModel> other;
  if (!config.other_kv_type.empty()) other = TRY(load(config, config.other_kv_type));
  Samples samples;
  for (std::uint32_t round = 0; round < config.rounds; ++round)
    for (const StepShape& shape : kShapes)
      for (const std::uint32_t context : config.contexts) {
        TRY(add_step("step_ms", *first, shape, config, context, samples));
        if (other) TRY(add_step("other.step_ms", *other, shape, config, context, samples));
      }
  nlohmann::json json = figures_of(samples, Statistic::Least);
  json.update({{"model", first->config().name},
               {"threads", config.threads},
               {"arithmetic", config.arithmetic},
               {"simd", name(simd_path_or_best(config.simd))},
               {"kv_type", config.kv_type}});
  if (!other) return nlohmann::json{{"context", std::move(json)}};
  json["other"]["kv_type"] = config.other_kv_type;
  for (const StepShape& shape : kShapes)
    for (const std::uint32_t context : config.contexts) {
      const std::string place = fmt::format(".{}.{}", shape.name, context);
      const FigureRow ratio{"other.ratio" + place, Statistic::Least, "other.step_ms" + place,
                            "step_ms" + place};
      add_figures(json, samples, {&ratio, 1});
    }
  return nlohmann::json{{"context", std::move(json)}};
}

}  // namespace leasehold::bench
