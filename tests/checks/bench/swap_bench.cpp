#include "tests/checks/bench/swap_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "kernels/model/gguf/gguf.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kShortestText = 64;
constexpr std::uint32_t kMostPrefillRows = 256;  // the token budget of a worker

using Lengths = std::set<std::uint32_t>;

std::string place(std::uint32_t length, const char* figure) {
  return fmt::format("lengths.{}.{}", length, figure);
}

/// Computes the longest text once. The time of each length is the time until its rows are computed.
Result<void> measure_prefill(LocalModel& model, const Lengths& lengths, Samples& samples) {
  model.restart(0);
  std::uint32_t computed = 0;
  const double begin_ns = thread_time_ns();
  for (const std::uint32_t length : lengths) {
    while (computed < length) {
      const std::uint32_t end = std::min(length, computed + kMostPrefillRows);
      TRY(model.forward(text_rows(1, end - computed, computed)));
      computed = end;
    }
    samples[place(length, "prefill_us")].push_back((thread_time_ns() - begin_ns) / 1e3);
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

Result<void> measure_round(LocalModel& model, const Lengths& lengths, Samples& samples) {
  TRY(measure_prefill(model, lengths, samples));
  for (const std::uint32_t length : lengths) {
    const double took_us = TRY(swap_us(model, length));
    samples[place(length, "swap_us")].push_back(took_us);
    samples[place(length, "share")].push_back(took_us /
                                              samples[place(length, "prefill_us")].back());
  }
  return {};
}

nlohmann::json json_of(const Lengths& lengths, const Samples& samples) {
  nlohmann::json json = figures_of(samples, Statistic::Median);
  json["wins_from"] = nullptr;
  double largest_share = 0;
  for (const std::uint32_t length : std::views::reverse(lengths)) {
    largest_share = std::max(largest_share, figure_of(samples, place(length, "share")));
    if (largest_share < 1) json["wins_from"] = length;
  }
  json["largest_share"] = largest_share;
  return json;
}

Result<nlohmann::json> measure(const SwapBenchConfig& config, Arithmetic arithmetic,
                               std::uint32_t longest) {
  const auto model = TRY(LocalModel::load({.model_path = config.model_path,
                                           .arithmetic = arithmetic,
                                           .max_rows = std::min(longest, kMostPrefillRows),
                                           .positions = longest,
                                           .has_swap = true}));
  Lengths lengths;
  for (std::uint32_t length = kShortestText; length <= longest; length *= 2) lengths.insert(length);
  Samples samples;
  for (std::uint32_t round = 0; round < config.rounds; ++round)
    TRY(measure_round(*model, lengths, samples));
  return json_of(lengths, samples);
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
