/// Whole numbers from `low` to `high`, as a grammar of their digits.
#pragma once

#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold {

/// What numbers without bounds are kept to: exact in every reader's double, and 16 digits.
inline constexpr std::int64_t kMaxSafeInteger = 9'007'199'254'740'991;

/// Without leading zeros and without -0. low ≤ high, both within ±kMaxSafeInteger.
Symbols integer_range(GrammarBuilder& builder, std::int64_t low, std::int64_t high);

}  // namespace leasehold
