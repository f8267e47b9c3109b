/// Measures tokens per second of one model: decoding alone, decoding in batches, and a prompt.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/local_model/local_model.hpp"

namespace leasehold::bench {

inline constexpr std::uint32_t kSmallBatch = 8;
inline constexpr std::uint32_t kLargeBatch = 32;
/// Tokens of each sequence before the decoded ones.
inline constexpr std::uint32_t kTextTokens = 2;

/// "decode", "batch_8", "batch_32", "prefill"; each in tokens per second, or a ratio of two.
using Figures = std::map<std::string, double>;

struct FigureSteps {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t decoded_tokens = 0;  ///< Decoded tokens of each sequence.
  double (*now_ns)() = nullptr;      ///< The clock.
};

/// The options that a model needs for these steps; the caller sets `model_path`, threads and
/// arithmetic.
LocalOptions options_for(const FigureSteps& steps);

/// Precondition: loaded with `options_for(steps)`. Errors: those of a step.
Result<Figures> measure_figures(LocalModel& model, const FigureSteps& steps);

/// The median of each figure. Precondition: not empty; all rounds have the same figures.
Figures medians_of(const std::vector<Figures>& rounds);

Figures ratios_of(const Figures& to, const Figures& from);

}  // namespace leasehold::bench
