#include "tests/checks/bench/engine_figures.hpp"

#include <algorithm>

#include "tests/checks/bench/statistics.hpp"

namespace leasehold::bench {
namespace {

/// `n_rows` rows for each of `sequences` sequences; one row of each sequence has logits.
std::vector<LocalRow> rows_of(std::uint32_t sequences, std::uint32_t n_rows) {
  std::vector<LocalRow> rows;
  for (std::uint32_t s = 0; s < sequences; ++s)
    for (std::uint32_t i = 0; i < n_rows; ++i)
      rows.push_back({.sequence = s,
                      .token = static_cast<TokenId>(100 + s + i % 50),
                      .wants_logits = i + 1 == n_rows});
  return rows;
}

/// Runs `n_steps` steps of the same rows.
Result<double> tokens_per_second(LocalModel& model, const FigureSteps& steps,
                                 const std::vector<LocalRow>& rows, std::uint32_t n_steps) {
  const double begin_ns = steps.now_ns();
  for (std::uint32_t i = 0; i < n_steps; ++i) TRY(model.forward(rows));
  return static_cast<double>(rows.size()) * n_steps / ((steps.now_ns() - begin_ns) / 1e9);
}

}  // namespace

LocalOptions options_for(const FigureSteps& steps) {
  return {.max_rows = std::max(steps.prompt_tokens, kLargeBatch * kTextTokens),
          .sequences = kLargeBatch,
          .positions = std::max(steps.prompt_tokens, kTextTokens + steps.decoded_tokens)};
}

Result<Figures> measure_figures(LocalModel& model, const FigureSteps& steps) {
  Figures figures;
  model.restart(0);
  figures["prefill"] = TRY(tokens_per_second(model, steps, rows_of(1, steps.prompt_tokens), 1));
  const std::pair<const char*, std::uint32_t> batches[] = {
      {"decode", 1}, {"batch_8", kSmallBatch}, {"batch_32", kLargeBatch}};
  for (const auto& [name, sequences] : batches) {
    for (std::uint32_t s = 0; s < sequences; ++s) model.restart(s);
    TRY(model.forward(rows_of(sequences, kTextTokens)));
    figures[name] =
        TRY(tokens_per_second(model, steps, rows_of(sequences, 1), steps.decoded_tokens));
  }
  return figures;
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
  for (const auto& [name, value] : to) ratios[name] = value / from.at(name);
  return ratios;
}

}  // namespace leasehold::bench
