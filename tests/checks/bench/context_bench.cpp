#include "tests/checks/bench/context_bench.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/model/kv_type.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::bench {
namespace {

/// best_simd_path() asks the kernel for AMX, so it is called only if no path is given.
SimdPath path_of(const ContextBenchConfig& config) {
  const auto given = simd_path_from_name(config.simd);
  return given ? *given : best_simd_path();
}

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

/// One KV type, and the shortest steps so far.
struct Measured {
  std::unique_ptr<LocalModel> model;
  nlohmann::json step_ms;
};

Result<Measured> load(const ContextBenchConfig& config, const std::string& kv_type) {
  const std::optional<KvType> type = kv_type_from_name(kv_type);
  if (!type) return fail(Errc::BadRequest, "there is no KV type " + kv_type + "; use f16 or q8_0");
  const std::uint32_t longest =
      config.contexts.empty() ? 0 : *std::ranges::max_element(config.contexts);
  auto model = TRY(LocalModel::load(
      {.model_path = config.model_path,
       .simd = path_of(config),
       .threads = config.threads,
       .kv_type = *type,
       .arithmetic = config.arithmetic == "int8" ? Arithmetic::Int8 : Arithmetic::F32,
       .max_rows = kChunkRows,
       .sequences = kContextSequences,
       .positions = longest + kChunkRows}));
  return Measured{.model = std::move(model), .step_ms = {}};
}

nlohmann::json ratios(const nlohmann::json& other, const nlohmann::json& first) {
  nlohmann::json all;
  for (const auto& [shape, contexts] : first.items())
    for (const auto& [context, ms] : contexts.items())
      all[shape][context] = other.at(shape).at(context).get<double>() / ms.get<double>();
  return all;
}

}  // namespace

Result<nlohmann::json> measure_contexts(const ContextBenchConfig& config) {
  std::vector<Measured> measured;
  measured.push_back(TRY(load(config, config.kv_type)));
  if (!config.other_kv_type.empty()) measured.push_back(TRY(load(config, config.other_kv_type)));
  for (std::uint32_t round = 0; round < config.rounds; ++round)
    for (const StepShape& shape : kShapes)
      for (const std::uint32_t context : config.contexts)
        for (Measured& one : measured) {
          const double ms = TRY(step_ms(*one.model, shape, context, config.threads));
          nlohmann::json& best = one.step_ms[shape.name][std::to_string(context)];
          if (best.is_null() || ms < best.get<double>()) best = ms;
        }
  const Measured& first = measured.front();
  nlohmann::json json{{"model", first.model->config().name}, {"threads", config.threads},
                      {"arithmetic", config.arithmetic},     {"simd", name(path_of(config))},
                      {"kv_type", config.kv_type},           {"step_ms", first.step_ms}};
  if (measured.size() > 1)
    json["other"] = {{"kv_type", config.other_kv_type},
                     {"step_ms", measured.back().step_ms},
                     {"ratio", ratios(measured.back().step_ms, first.step_ms)}};
  return nlohmann::json{{"context", std::move(json)}};
}

}  // namespace leasehold::bench
