/// Tokens per second of one model: decoding alone and in batches, and a prompt.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::bench {

inline constexpr std::uint32_t kSmallBatch = 8;
inline constexpr std::uint32_t kLargeBatch = 32;
inline constexpr std::uint32_t kTextTokens = 2;  ///< Per sequence, before decoding.

/// "decode", "batch_8", "batch_32", "prefill": tokens per second, or ratios of two such figures.
using Figures = std::map<std::string, double>;

struct FigureSteps {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t decoded_tokens = 0;  ///< Per sequence.
  double (*now_ns)() = nullptr;      ///< The clock.
};

/// The options that a model needs to be measured with these steps. The caller sets `model_path`,
/// threads and arithmetic.
LocalOptions options_for(const FigureSteps& steps);

/// Precondition: `model` was loaded with `options_for(steps)`. Errors: those of a step.
Result<Figures> measure_figures(LocalModel& model, const FigureSteps& steps);

/// The median of each figure. Precondition: not empty; all rounds have the same figures.
Figures medians_of(const std::vector<Figures>& rounds);

Figures ratios_of(const Figures& to, const Figures& from);

}  // namespace leasehold::bench
