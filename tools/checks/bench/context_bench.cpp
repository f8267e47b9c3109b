#include "tools/checks/bench/context_bench.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/checks/bench/thread_time.hpp"
#include "tools/local_model/local_model.hpp"

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
  std::vector<LocalRow> rows;
  for (std::uint32_t s = 0; s < shape.sequences; ++s) {
    model.restart(s, context);
    for (std::uint32_t i = 0; i < shape.rows_each; ++i)
      rows.push_back({.sequence = s,
                      .token = static_cast<TokenId>(100 + s + i % 50),
                      .wants_logits = i + 1 == shape.rows_each});
  }
  const double begin_ns = work_time_ns(threads);
  TRY(model.forward(rows));
  return (work_time_ns(threads) - begin_ns) / 1e6;
}

}  // namespace

Result<nlohmann::json> measure_contexts(const ContextBenchConfig& config) {
  const std::uint32_t longest =
      config.contexts.empty() ? 0 : *std::ranges::max_element(config.contexts);
  const SimdPath simd = simd_path_from_name(config.simd).value_or(best_simd_path());
  const auto model = TRY(LocalModel::load(
      {.model_path = config.model_path,
       .simd = simd,
       .threads = config.threads,
       .arithmetic = config.arithmetic == "int8" ? Arithmetic::Int8 : Arithmetic::F32,
       .max_rows = kChunkRows,
       .sequences = kContextSequences,
       .positions = longest + kChunkRows}));
  nlohmann::json shortest;
  for (std::uint32_t round = 0; round < config.rounds; ++round)
    for (const StepShape& shape : kShapes)
      for (const std::uint32_t context : config.contexts) {
        const double ms = TRY(step_ms(*model, shape, context, config.threads));
        nlohmann::json& best = shortest[shape.name][std::to_string(context)];
        if (best.is_null() || ms < best.get<double>()) best = ms;
      }
  return nlohmann::json{{"context",
                         {{"model", model->config().name},
                          {"threads", config.threads},
                          {"arithmetic", config.arithmetic},
                          {"simd", name(simd)},
                          {"step_ms", std::move(shortest)}}}};
}

}  // namespace leasehold::bench
