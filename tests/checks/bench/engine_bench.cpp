#include "tests/checks/bench/engine_bench.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kSmallBatch = 8;
constexpr std::uint32_t kLargeBatch = 32;
constexpr std::uint32_t kTextTokens = 2;  // per sequence, before decoding

using Clock = double (*)();

Result<std::unique_ptr<LocalModel>> load(const EngineBenchConfig& config, Arithmetic arithmetic) {
  return LocalModel::load(
      {.model_path = config.model_path,
       .simd = simd_path_or_best(config.simd),
       .threads = config.threads,
       .arithmetic = arithmetic,
       .max_rows = std::max(config.prompt_tokens, kLargeBatch * kTextTokens),
       .sequences = kLargeBatch,
       .positions = std::max(config.prompt_tokens, kTextTokens + config.decoded_tokens)});
}

/// Runs `n_steps` steps of the same rows.
Result<double> tokens_per_second(LocalModel& model, Clock now_ns, const std::vector<LocalRow>& rows,
                                 std::uint32_t n_steps) {
  const double begin_ns = now_ns();
  for (std::uint32_t i = 0; i < n_steps; ++i) TRY(model.forward(rows));
  return static_cast<double>(rows.size()) * n_steps / ((now_ns() - begin_ns) / 1e9);
}

/// Adds a sample of each figure; their names begin with `prefix`.
Result<void> add_round(LocalModel& model, const EngineBenchConfig& config, Clock now_ns,
                       const std::string& prefix, Samples& samples) {
  model.restart(0);
  samples[prefix + "prefill"].push_back(
      TRY(tokens_per_second(model, now_ns, text_rows(1, config.prompt_tokens), 1)));
  const std::pair<const char*, std::uint32_t> batches[] = {
      {"decode", 1}, {"batch_8", kSmallBatch}, {"batch_32", kLargeBatch}};
  for (const auto& [name, sequences] : batches) {
    for (std::uint32_t s = 0; s < sequences; ++s) model.restart(s);
    TRY(model.forward(text_rows(sequences, kTextTokens)));
    samples[prefix + name].push_back(
        TRY(tokens_per_second(model, now_ns, text_rows(sequences, 1), config.decoded_tokens)));
  }
  return {};
}

}  // namespace

Result<nlohmann::json> measure_engine(const EngineBenchConfig& config) {
  const auto f32 = TRY(load(config, Arithmetic::F32));
  const auto int8 = TRY(load(config, Arithmetic::Int8));
  const Clock now_ns = config.threads == 1 ? thread_time_ns : wall_time_ns;
  Samples samples;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    TRY(add_round(*f32, config, now_ns, "f32.", samples));
    TRY(add_round(*int8, config, now_ns, "int8.", samples));
    for (const std::string figure : {"decode", "batch_8", "batch_32", "prefill"})
      samples["int8_to_f32." + figure].push_back(samples["int8." + figure].back() /
                                                 samples["f32." + figure].back());
  }
  nlohmann::json report = figures_of(samples, Statistic::Median);
  const FigureRow gains[] = {{"f32.batch_gain", Statistic::Median, "f32.batch_8", "f32.decode"},
                             {"int8.batch_gain", Statistic::Median, "int8.batch_8", "int8.decode"}};
  add_figures(report, samples, gains);
  report.update({{"model", f32->config().name}, {"threads", config.threads}});
  return nlohmann::json{{"engine", std::move(report)}};
}

Result<nlohmann::json> measure_figures(const EngineBenchConfig& config) {
  const auto model = TRY(load(config, Arithmetic::Int8));
  TRY(model->forward(text_rows(1, config.prompt_tokens)));  // llama-bench warms up in this way
  Samples samples;
  TRY(add_round(*model, config, wall_time_ns, "figures.", samples));
  return figures_of(samples, Statistic::Median);
}

Result<double> decode_rate(const DecodedTexts& texts) {
  const auto model = TRY(LocalModel::load({.model_path = texts.model_path,
                                           .simd = simd_path_or_best(texts.simd),
                                           .threads = texts.threads,
                                           .arithmetic = Arithmetic::Int8,
                                           .max_rows = texts.texts * texts.prompt_tokens,
                                           .sequences = texts.texts,
                                           .positions = texts.prompt_tokens + texts.tokens}));
  TRY(model->forward(text_rows(texts.texts, texts.prompt_tokens)));
  const Clock now_ns = texts.threads == 1 ? thread_time_ns : wall_time_ns;
  return tokens_per_second(*model, now_ns, text_rows(texts.texts, 1), texts.tokens);
}

}  // namespace leasehold::bench
