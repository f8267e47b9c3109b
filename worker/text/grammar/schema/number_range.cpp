#include "worker/text/grammar/schema/number_range.hpp"

#include <algorithm>
#include <charconv>
#include <compare>

namespace leasehold {
namespace {

constexpr int kMaxFraction = 16;
/// Different decimal numbers of up to 15 digits are different doubles.
constexpr int kExactDigits = 15;
constexpr int kMaxExponent = 40;

Symbols number_digit(GrammarBuilder& builder, char low, char high) {
  return builder.character({{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high)}});
}

/// True if all digits of this length are between `low` and `high`.
bool is_free(std::string_view low, std::string_view high) {
  return low.find_first_not_of('0') == std::string_view::npos &&
         high.find_first_not_of('9') == std::string_view::npos;
}

/// Numbers between `low` and `high`, which have the same number of digits.
Symbols digits_between(GrammarBuilder& builder, std::string_view low, std::string_view high) {
  const auto n = static_cast<std::uint32_t>(low.size());
  if (n == 0) return {};
  if (is_free(low, high)) return builder.repeat(number_digit(builder, '0', '9'), {n, n});
  const std::string_view low_rest = low.substr(1);
  const std::string_view high_rest = high.substr(1);
  const auto with = [&](char first, const Symbols& rest) {
    return GrammarBuilder::join(number_digit(builder, first, first), rest);
  };
  if (low[0] == high[0]) return with(low[0], digits_between(builder, low_rest, high_rest));
  const std::string nines(n - 1, '9');
  const std::string zeros(n - 1, '0');
  std::vector<Symbols> alternatives{with(low[0], digits_between(builder, low_rest, nines)),
                                    with(high[0], digits_between(builder, zeros, high_rest))};
  if (low[0] + 1 < high[0]) {
    const Symbols inner =
        number_digit(builder, static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1));
    alternatives.push_back(GrammarBuilder::join(inner, digits_between(builder, zeros, nines)));
  }
  return builder.choice(std::move(alternatives));
}

/// The integers from `low` to `high`, which are within ±kMaxSafeInteger. `between` makes the
/// numbers between two texts of the same number of digits.
template <class Between>
Symbols integers(GrammarBuilder& builder, std::int64_t low, std::int64_t high, Between between) {
  std::vector<Symbols> alternatives;
  const auto add = [&](std::string_view sign, std::int64_t from, std::int64_t to) {
    while (from <= to) {
      const std::string first = std::to_string(from);
      const std::int64_t end =
          std::min<std::int64_t>(std::stoll(std::string(first.size(), '9')), to);
      alternatives.push_back(
          GrammarBuilder::join(builder.text(sign), between(first, std::to_string(end))));
      from = end + 1;
    }
  };
  if (low < 0) add("-", std::max<std::int64_t>(1, -high), -low);
  if (high >= 0) add("", std::max<std::int64_t>(0, low), high);
  return builder.choice(std::move(alternatives));
}

/// Bounds for the digits after the point. `low` and `high` are the remaining digits of a bound, or
/// nothing if there is no bound any more.
struct FractionBounds {
  std::optional<std::string_view> low;
  std::optional<std::string_view> high;
  bool low_exclusive = false;
  bool high_exclusive = false;
};

bool may_end_here(const FractionBounds& bounds) {
  if (bounds.low && (!bounds.low->empty() || bounds.low_exclusive)) return false;
  return !bounds.high || !bounds.high->empty() || !bounds.high_exclusive;
}

char first_digit(std::string_view digits) {
  return digits.empty() ? '0' : digits.front();
}

FractionBounds after_digit(const FractionBounds& bounds, char digit) {
  FractionBounds rest = bounds;
  const auto next = [](std::string_view digits) {
    return digits.empty() ? digits : digits.substr(1);
  };
  if (bounds.low) {
    rest.low = next(*bounds.low);
    if (digit > first_digit(*bounds.low)) rest.low.reset();
  }
  if (bounds.high) {
    rest.high = next(*bounds.high);
    if (digit < first_digit(*bounds.high)) rest.high.reset();
  }
  return rest;
}

/// Matches at least one digit and at most `room`.
Symbols fraction_digits(GrammarBuilder& builder, const FractionBounds& bounds, int room) {
  if (room <= 0) return builder.character({});
  if (!bounds.low && !bounds.high)
    return builder.repeat(number_digit(builder, '0', '9'), {1, static_cast<std::uint32_t>(room)});
  const char low = bounds.low ? first_digit(*bounds.low) : '0';
  const char high = bounds.high ? first_digit(*bounds.high) : '9';
  std::vector<Symbols> alternatives;
  const auto add = [&](char from, char to) {
    if (from > to) return;
    const FractionBounds rest = after_digit(bounds, from);
    std::vector<Symbols> ends;
    if (may_end_here(rest)) ends.emplace_back();
    if (room > 1) ends.push_back(fraction_digits(builder, rest, room - 1));
    if (ends.empty()) return;
    alternatives.push_back(
        GrammarBuilder::join(number_digit(builder, from, to), builder.choice(std::move(ends))));
  };
  if (low == high) {
    add(low, high);
  } else if (low < high) {
    const char first_free = bounds.low ? static_cast<char>(low + 1) : low;
    const char last_free = bounds.high ? static_cast<char>(high - 1) : high;
    if (bounds.low) add(low, low);
    add(first_free, last_free);
    if (bounds.high) add(high, high);
  }
  if (alternatives.empty()) return builder.character({});
  return builder.choice(std::move(alternatives));
}

Symbols fraction(GrammarBuilder& builder, const FractionBounds& bounds, int room) {
  std::vector<Symbols> alternatives;
  if (may_end_here(bounds)) alternatives.emplace_back();
  if (room > 0)
    alternatives.push_back(
        GrammarBuilder::join(builder.text("."), fraction_digits(builder, bounds, room)));
  if (alternatives.empty()) return builder.character({});
  return builder.choice(std::move(alternatives));
}

/// A whole part beyond kMaxSafeInteger, the largest that is generated, counts as kMaxSafeInteger.
std::int64_t whole_value(const std::string& whole) {
  return whole.size() > 16 ? kMaxSafeInteger
                           : std::min<std::int64_t>(std::stoll(whole), kMaxSafeInteger);
}

/// Adds the magnitudes from `low` to `high`, which are both at least 0.
void add_magnitudes(GrammarBuilder& builder, std::string_view sign, const DecimalBound& low,
                    const std::optional<DecimalBound>& high, std::vector<Symbols>& alternatives) {
  const std::int64_t first = whole_value(low.value.whole);
  const std::int64_t last = high ? whole_value(high->value.whole) : kMaxSafeInteger;
  const bool exclusive = low.exclusive || (high && high->exclusive);
  const auto longest = static_cast<int>(
      std::max(low.value.whole.size(), high ? high->value.whole.size() : std::size_t{0}));
  const int room = exclusive ? std::max(0, kExactDigits - longest) : kMaxFraction;
  const auto add = [&](const Symbols& whole, const FractionBounds& bounds) {
    alternatives.push_back(
        GrammarBuilder::join(builder.text(sign), whole, fraction(builder, bounds, room)));
  };
  FractionBounds from_low{.low = low.value.fraction, .high = {}, .low_exclusive = low.exclusive};
  if (low.value.whole.size() > 16 || first > last) return;
  if (high && first == last) {
    from_low.high = high->value.fraction;
    from_low.high_exclusive = high->exclusive;
    return add(builder.text(low.value.whole), from_low);
  }
  add(builder.text(low.value.whole), from_low);
  const std::int64_t before_last = high ? last - 1 : last;
  if (first + 1 <= before_last) add(integer_range(builder, first + 1, before_last), {});
  if (high && high->value.whole.size() <= 16)
    add(builder.text(high->value.whole), {.low = {},
                                          .high = high->value.fraction,
                                          .low_exclusive = false,
                                          .high_exclusive = high->exclusive});
}

DecimalBound mirrored(DecimalBound bound) {
  bound.value.negative = false;
  return bound;
}

bool is_zero(const Decimal& value) {
  return value.whole == "0" && value.fraction.empty();
}

}  // namespace

Decimal Decimal::parse(std::string_view json) {
  Decimal result;
  if (json.starts_with('-')) {
    result.negative = true;
    json.remove_prefix(1);
  }
  int exponent = 0;
  if (const auto at = json.find_first_of("eE"); at != std::string_view::npos) {
    std::string_view text = json.substr(at + 1);
    if (text.starts_with('+')) text.remove_prefix(1);
    if (std::from_chars(text.data(), text.data() + text.size(), exponent).ec != std::errc{})
      exponent = text.starts_with('-') ? -999 : 999;
    json = json.substr(0, at);
  }
  const std::size_t point = std::min(json.find('.'), json.size());
  std::string digits(json.substr(0, point));
  if (point < json.size()) digits += json.substr(point + 1);
  int n_whole = static_cast<int>(point) + exponent;
  if (n_whole < -kMaxExponent) n_whole = -kMaxExponent;
  if (n_whole < 0) digits.insert(0, static_cast<std::size_t>(-n_whole), '0');
  n_whole = std::clamp(n_whole, 0, kMaxExponent);
  if (static_cast<int>(digits.size()) < n_whole)
    digits.resize(static_cast<std::size_t>(n_whole), '0');
  result.whole = digits.substr(0, static_cast<std::size_t>(n_whole));
  result.fraction = digits.substr(static_cast<std::size_t>(n_whole));
  result.whole.erase(0, std::min(result.whole.find_first_not_of('0'), result.whole.size()));
  if (result.whole.empty()) result.whole += '0';
  result.fraction.erase(result.fraction.find_last_not_of('0') + 1);
  if (is_zero(result)) result.negative = false;
  return result;
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  if (negative != other.negative)
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  const auto magnitude = [&]() -> std::strong_ordering {
    if (const auto by_size = whole.size() <=> other.whole.size(); by_size != 0) return by_size;
    if (const auto by_whole = whole <=> other.whole; by_whole != 0) return by_whole;
    return fraction <=> other.fraction;
  }();
  return negative ? 0 <=> magnitude : magnitude;
}

Symbols integer_range(GrammarBuilder& builder, std::int64_t low, std::int64_t high) {
  return integers(builder, low, high, [&](std::string_view first, std::string_view last) {
    return digits_between(builder, first, last);
  });
}

Symbols number_range(GrammarBuilder& builder, const std::optional<DecimalBound>& low,
                     const std::optional<DecimalBound>& high) {
  std::vector<Symbols> alternatives;
  const DecimalBound zero;
  if (!high || !high->value.negative) {
    const DecimalBound& from = low && !low->value.negative ? *low : zero;
    add_magnitudes(builder, "", from, high, alternatives);
  }
  if (!low || low->value.negative) {
    const DecimalBound above_zero{.value = {}, .exclusive = true};
    std::optional<DecimalBound> to;
    if (low) to = mirrored(*low);
    add_magnitudes(builder, "-", high && high->value.negative ? mirrored(*high) : above_zero, to,
                   alternatives);
  }
  if (alternatives.empty()) return builder.character({});
  return builder.choice(std::move(alternatives));
}

namespace {

/// Builds the digits of multiples. There is one rule for each number of digits that follow and each
/// remainder of the digits so far.
class MultiplesBuilder {
 public:
  MultiplesBuilder(GrammarBuilder& builder, std::uint64_t step) : builder_(builder), step_(step) {}

  /// Matches digits from `low` to `high`, which have the same length, that follow digits with this
  /// remainder and complete a multiple.
  Symbols between(std::string_view low, std::string_view high, std::uint64_t remainder) {
    if (is_free(low, high)) return any(low.size(), remainder);
    std::vector<Symbols> alternatives;
    const std::string zeros(low.size() - 1, '0');
    const std::string nines(low.size() - 1, '9');
    for (char digit = low[0]; digit <= high[0]; ++digit) {
      const std::string_view from = digit == low[0] ? low.substr(1) : std::string_view(zeros);
      const std::string_view to = digit == high[0] ? high.substr(1) : std::string_view(nines);
      alternatives.push_back(GrammarBuilder::join(number_digit(builder_, digit, digit),
                                                  between(from, to, after(remainder, digit))));
    }
    return builder_.choice(std::move(alternatives));
  }

 private:
  std::uint64_t after(std::uint64_t remainder, char digit) const {
    return (remainder * 10 + static_cast<std::uint64_t>(digit - '0')) % step_;
  }

  Symbols any(std::size_t n, std::uint64_t remainder) {
    if (n == 0) return remainder == 0 ? Symbols{} : builder_.character({});
    const auto [known, is_new] = rules_.emplace(std::pair(n, remainder), RuleId{});
    if (!is_new) return GrammarBuilder::rule(known->second);
    const RuleId made = known->second = builder_.declare({});
    std::vector<Symbols> alternatives;
    for (char digit = '0'; digit <= '9' && !builder_.is_full(); ++digit)
      alternatives.push_back(GrammarBuilder::join(number_digit(builder_, digit, digit),
                                                  any(n - 1, after(remainder, digit))));
    builder_.define(made, std::move(alternatives));
    return GrammarBuilder::rule(made);
  }

  GrammarBuilder& builder_;
  std::uint64_t step_;
  std::map<std::pair<std::size_t, std::uint64_t>, RuleId> rules_;
};

constexpr std::uint64_t kMaxListedMultiples = 256;
constexpr std::uint64_t kMaxRemainders = 1000;  // summed over all lengths

}  // namespace

std::optional<Symbols> multiples(GrammarBuilder& builder, std::uint64_t step, std::int64_t low,
                                 std::int64_t high) {
  const auto signed_step = static_cast<std::int64_t>(step);
  std::vector<Symbols> alternatives;
  if (static_cast<std::uint64_t>(high - low) / step < kMaxListedMultiples) {
    std::int64_t first = low / signed_step * signed_step;
    if (first < low) first += signed_step;
    for (std::int64_t value = first; value <= high; value += signed_step)
      alternatives.push_back(builder.text(std::to_string(value)));
    if (alternatives.empty()) return builder.character({});
    return builder.choice(std::move(alternatives));
  }
  const std::size_t longest = std::to_string(std::max(-low, high)).size();
  if (step * longest > kMaxRemainders) return std::nullopt;
  MultiplesBuilder numbers(builder, step);
  return integers(builder, low, high, [&](std::string_view first, std::string_view last) {
    return numbers.between(first, last, 0);
  });
}

}  // namespace leasehold
