/// Numbers within bounds as a grammar of their decimal digits.
#pragma once

#include <optional>
#include <string>

#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold {

/// The default bound: all integers up to it are exact in a double. It has 16 digits.
inline constexpr std::int64_t kMaxSafeInteger = 9'007'199'254'740'991;

/// Integers from `low` to `high`, without leading zeros and -0. Precondition: low ≤ high, both
/// within ±kMaxSafeInteger.
Symbols integer_range(GrammarBuilder& builder, std::int64_t low, std::int64_t high);

/// A decimal number. `whole` has no leading zeros and is "0" if it has no other digits; `fraction`
/// has no trailing zeros.
struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string fraction;

  /// Reads a number in JSON. Puts at most 40 digits before the point, and inserts at most 40 zeros
  /// after it, so extreme magnitudes change.
  static Decimal parse(std::string_view json);
  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const = default;
};

struct DecimalBound {
  Decimal value;
  bool exclusive = false;
};

/// Matches texts without exponent and with at most 16 digits on each side of the point. With an
/// exclusive bound there are fewer digits, so that a parser that rounds to a double also reads a
/// number within the bound. Matches nothing if no number is within the bounds.
Symbols number_range(GrammarBuilder& builder, const std::optional<DecimalBound>& low,
                     const std::optional<DecimalBound>& high);

/// Multiples of `step` from `low` to `high`; step > 0, low ≤ high, within ±kMaxSafeInteger. Returns
/// nothing if the grammar would be too large. Pass bounds of few digits if the schema has none,
/// because the grammar has a rule for each remainder and number of digits.
std::optional<Symbols> multiples(GrammarBuilder& builder, std::uint64_t step, std::int64_t low,
                                 std::int64_t high);

}  // namespace leasehold
