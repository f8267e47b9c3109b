/// Integers from `low` to `high` as a grammar of their digits.
#pragma once

#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold {

/// The default bound: all integers up to it are exact in a double. It has 16 digits.
inline constexpr std::int64_t kMaxSafeInteger = 9'007'199'254'740'991;

/// Matches no leading zeros and no -0. Precondition: low ≤ high, both within ±kMaxSafeInteger.
Symbols integer_range(GrammarBuilder& builder, std::int64_t low, std::int64_t high);

}  // namespace leasehold
