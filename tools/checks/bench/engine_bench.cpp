#include "tools/checks/bench/engine_bench.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/checks/bench/statistics.hpp"
#include "tools/checks/bench/thread_time.hpp"
#include "tools/local_model/local_model.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kMostSequences = 32;
constexpr std::uint32_t kTextTokens = 2;  // before the measured ones
constexpr std::uint32_t kDecodedTokens = 3;

/// What is measured, each as tokens per second.
using Figures = std::map<std::string, double>;

/// `n_rows` rows for each of `sequences` sequences; one of each has logits.
std::vector<LocalRow> rows_of(std::uint32_t sequences, std::uint32_t n_rows) {
  std::vector<LocalRow> rows;
  for (std::uint32_t s = 0; s < sequences; ++s)
    for (std::uint32_t i = 0; i < n_rows; ++i)
      rows.push_back({.sequence = s,
                      .token = static_cast<TokenId>(100 + s + i % 50),
                      .wants_logits = i + 1 == n_rows});
  return rows;
}

Result<double> tokens_per_second(LocalModel& model, const EngineBenchConfig& config,
                                 std::uint32_t sequences, std::uint32_t n_rows,
                                 std::uint32_t steps) {
  const double begin_ns = work_time_ns(config.threads);
  for (std::uint32_t i = 0; i < steps; ++i) TRY(model.forward(rows_of(sequences, n_rows)));
  return sequences * n_rows * steps / ((work_time_ns(config.threads) - begin_ns) / 1e9);
}

Result<Figures> measure_once(LocalModel& model, const EngineBenchConfig& config) {
  Figures figures;
  model.restart(0);
  figures["prefill"] = TRY(tokens_per_second(model, config, 1, config.prompt_tokens, 1));
  const std::pair<const char*, std::uint32_t> batches[] = {
      {"decode", 1}, {"batch_8", 8}, {"batch_32", kMostSequences}};
  for (const auto& [name, sequences] : batches) {
    for (std::uint32_t s = 0; s < sequences; ++s) model.restart(s);
    TRY(model.forward(rows_of(sequences, kTextTokens)));
    figures[name] = TRY(tokens_per_second(model, config, sequences, 1, kDecodedTokens));
  }
  figures["batch_gain"] = figures["batch_8"] / figures["decode"];
  return figures;
}

Result<std::unique_ptr<LocalModel>> load(const EngineBenchConfig& config, Arithmetic arithmetic) {
  const std::uint32_t most_rows = std::max(config.prompt_tokens, kMostSequences * kTextTokens);
  return LocalModel::load(
      {.model_path = config.model_path,
       .threads = config.threads,
       .arithmetic = arithmetic,
       .max_rows = most_rows,
       .sequences = kMostSequences,
       .positions = std::max(config.prompt_tokens, kTextTokens + kDecodedTokens)});
}

Figures medians_of(const std::vector<Figures>& rounds) {
  Figures medians;
  for (const auto& [name, first] : rounds.front()) {
    std::vector<double> values;
    for (const Figures& round : rounds) values.push_back(round.at(name));
    medians[name] = median_of(values);
  }
  return medians;
}

Figures ratios_of(const Figures& to, const Figures& from) {
  Figures ratios;
  for (const char* name : {"decode", "batch_8", "batch_32", "prefill"})
    ratios[name] = to.at(name) / from.at(name);
  return ratios;
}

}  // namespace

Result<nlohmann::json> measure_engine(const EngineBenchConfig& config) {
  const auto f32 = TRY(load(config, Arithmetic::F32));
  const auto int8 = TRY(load(config, Arithmetic::Int8));
  std::vector<Figures> of_f32;
  std::vector<Figures> of_int8;
  std::vector<Figures> ratios;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    of_f32.push_back(TRY(measure_once(*f32, config)));
    of_int8.push_back(TRY(measure_once(*int8, config)));
    ratios.push_back(ratios_of(of_int8.back(), of_f32.back()));
  }
  return nlohmann::json{{"engine",
                         {{"model", f32->config().name},
                          {"threads", config.threads},
                          {"f32", medians_of(of_f32)},
                          {"int8", medians_of(of_int8)},
                          {"int8_to_f32", medians_of(ratios)}}}};
}

}  // namespace leasehold::bench
