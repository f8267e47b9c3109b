/// Numbers within bounds as a grammar of their decimal digits.
#pragma once

#include <optional>
#include <string>

#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold {

/// No leading zeros in `whole`, which is "0" for none; no trailing zeros in `fraction`.
struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string fraction;

  /// Of a number in JSON. Numbers beyond 10^40 become 10^40; digits beyond 10^-40 are dropped.
  static Decimal parse(std::string_view json);
  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const = default;
};

struct DecimalBound {
  Decimal value;
  bool exclusive = false;
};

/// Texts without exponent and with at most 16 digits on each side of the point. Next to an
/// exclusive bound there are fewer, so that also a parser that rounds to a double sees a number
/// within it. Matches nothing if no number is within the bounds.
Symbols number_range(GrammarBuilder& builder, const std::optional<DecimalBound>& low,
                     const std::optional<DecimalBound>& high);

/// Multiples of `step` from `low` to `high`; step > 0, low ≤ high, within ±kMaxSafeInteger. Nothing
/// if the grammar would be too large. Without other bounds, pass few digits: a grammar has a rule
/// for each remainder and digit.
std::optional<Symbols> multiples(GrammarBuilder& builder, std::uint64_t step, std::int64_t low,
                                 std::int64_t high);

}  // namespace leasehold
