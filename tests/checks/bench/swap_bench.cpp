#include "tests/checks/bench/swap_bench.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <vector>

#include "kernels/model/gguf/gguf.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kShortestText = 64;
constexpr std::uint32_t kMostPrefillRows = 256;  // the token budget of a worker
constexpr std::uint32_t kWords = 50;

struct SwapTimes {
  std::vector<double> swap_us, prefill_us, shares;  ///< [rounds]
};
using TimesByLength = std::map<std::uint32_t, SwapTimes>;

std::vector<LocalRow> text_rows(std::uint32_t begin, std::uint32_t end) {
  std::vector<LocalRow> rows;
  for (std::uint32_t i = begin; i < end; ++i)
    rows.push_back({.token = static_cast<TokenId>(100 + i % kWords), .wants_logits = i + 1 == end});
  return rows;
}

/// Computes the longest text once. The time of each length is the time until its rows are computed.
Result<void> measure_prefill(LocalModel& model, TimesByLength& by_length) {
  model.restart(0);
  std::uint32_t computed = 0;
  const double begin_ns = thread_time_ns();
  for (auto& [length, times] : by_length) {
    while (computed < length) {
      const std::uint32_t end = std::min(length, computed + kMostPrefillRows);
      TRY(model.forward(text_rows(computed, end)));
      computed = end;
    }
    times.prefill_us.push_back((thread_time_ns() - begin_ns) / 1e3);
  }
  return {};
}

Result<double> swap_us(LocalModel& model, std::uint32_t length) {
  TRY(model.clear_swap());
  const double begin_ns = thread_time_ns();
  TRY(model.swap_out(0, length));
  TRY(model.swap_in(0, length));
  return (thread_time_ns() - begin_ns) / 1e3;
}

Result<void> measure_round(LocalModel& model, TimesByLength& by_length) {
  TRY(measure_prefill(model, by_length));
  for (auto& [length, times] : by_length) {
    times.swap_us.push_back(TRY(swap_us(model, length)));
    times.shares.push_back(times.swap_us.back() / times.prefill_us.back());
  }
  return {};
}

nlohmann::json json_of(const TimesByLength& by_length) {
  nlohmann::json lengths = nlohmann::json::object();
  nlohmann::json wins_from;
  double largest_share = 0;
  for (const auto& [length, times] : std::views::reverse(by_length)) {
    const double share = median_of(times.shares);
    largest_share = std::max(largest_share, share);
    if (largest_share < 1) wins_from = length;
    lengths[std::to_string(length)] = {{"swap_us", median_of(times.swap_us)},
                                       {"prefill_us", median_of(times.prefill_us)},
                                       {"share", share}};
  }
  return {{"lengths", lengths}, {"largest_share", largest_share}, {"wins_from", wins_from}};
}

Result<nlohmann::json> measure(const SwapBenchConfig& config, Arithmetic arithmetic,
                               std::uint32_t longest) {
  const auto model = TRY(LocalModel::load({.model_path = config.model_path,
                                           .arithmetic = arithmetic,
                                           .max_rows = std::min(longest, kMostPrefillRows),
                                           .positions = longest,
                                           .has_swap = true}));
  TimesByLength by_length;
  for (std::uint32_t length = kShortestText; length <= longest; length *= 2) by_length[length] = {};
  for (std::uint32_t round = 0; round < config.rounds; ++round)
    TRY(measure_round(*model, by_length));
  return json_of(by_length);
}

}  // namespace

Result<nlohmann::json> measure_swap(const SwapBenchConfig& config) {
  const GgufFile file = TRY(GgufFile::open(config.model_path));
  const ModelConfig model = TRY(read_config(file));
  const std::uint32_t longest = std::min(config.longest, model.n_context);
  return nlohmann::json{{"swap",
                         {{"model", model.name},
                          {"f32", TRY(measure(config, Arithmetic::F32, longest))},
                          {"int8", TRY(measure(config, Arithmetic::Int8, longest))}}}};
}

}  // namespace leasehold::bench
