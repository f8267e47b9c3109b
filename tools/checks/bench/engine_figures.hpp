/// Tokens per second of one model: decoding alone and in batches, and a prompt.
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
inline constexpr std::uint32_t kTextTokens = 2;  ///< Of each sequence, before the decoded ones.

/// "decode", "batch_8", "batch_32", "prefill"; each in tokens per second, or a ratio of two.
using Figures = std::map<std::string, double>;

struct FigureSteps {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t decoded_tokens = 0;  ///< Of each sequence.
  double (*now_ns)() = nullptr;      ///< The clock.
};

/// What a model needs to be measured with these steps; `model_path`, threads and arithmetic are the
/// caller's.
LocalOptions options_for(const FigureSteps& steps);

/// Precondition: loaded with `options_for(steps)`. Errors: those of a step.
Result<Figures> measure_figures(LocalModel& model, const FigureSteps& steps);

/// Of each figure. Precondition: not empty; all have the same figures.
Figures medians_of(const std::vector<Figures>& rounds);

Figures ratios_of(const Figures& to, const Figures& from);

}  // namespace leasehold::bench
