#include "tools/checks/bench/batch_bench.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/checks/bench/statistics.hpp"
#include "tools/checks/bench/thread_time.hpp"
#include "tools/local_model/local_model.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kBatchPromptTokens = 8;

/// One row for each of `count` sequences.
std::vector<LocalRow> rows_of(std::uint32_t first, std::uint32_t count) {
  std::vector<LocalRow> rows;
  for (std::uint32_t s = first; s < first + count; ++s)
    rows.push_back({.sequence = s, .token = static_cast<TokenId>(100 + s)});
  return rows;
}

/// Decodes every sequence, `together` sequences per step. Returns tokens per second.
Result<double> decode(LocalModel& model, const BatchConfig& config, std::uint32_t together) {
  for (std::uint32_t s = 0; s < config.sequences; ++s) {
    model.restart(s);
    for (std::uint32_t i = 0; i < kBatchPromptTokens; ++i) TRY(model.forward(rows_of(s, 1)));
  }
  const double begin_ns = thread_time_ns();
  for (std::uint32_t i = 0; i < config.tokens; ++i)
    for (std::uint32_t s = 0; s < config.sequences; s += together)
      TRY(model.forward(rows_of(s, together)));
  const double seconds = (thread_time_ns() - begin_ns) / 1e9;
  return config.tokens * config.sequences / seconds;
}

}  // namespace

Result<nlohmann::json> measure_batch(const BatchConfig& config) {
  const auto model = TRY(LocalModel::load({.model_path = config.model_path,
                                           .max_rows = config.sequences,
                                           .sequences = config.sequences,
                                           .positions = kBatchPromptTokens + config.tokens}));
  std::vector<double> serial;
  std::vector<double> batched;
  std::vector<double> ratios;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    serial.push_back(TRY(decode(*model, config, 1)));
    batched.push_back(TRY(decode(*model, config, config.sequences)));
    ratios.push_back(batched.back() / serial.back());
  }
  return nlohmann::json{{"batch",
                         {{"model", model->config().name},
                          {"sequences", config.sequences},
                          {"serial_tokens_per_s", median_of(serial)},
                          {"batched_tokens_per_s", median_of(batched)},
                          {"ratio", median_of(ratios)}}}};
}

}  // namespace leasehold::bench
