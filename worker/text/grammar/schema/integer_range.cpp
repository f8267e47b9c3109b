#include "worker/text/grammar/schema/integer_range.hpp"

#include <algorithm>

namespace leasehold {
namespace {

using Text = std::string_view;

Symbols digit(GrammarBuilder& builder, char low, char high) {
  const auto code = [](char c) { return static_cast<std::uint32_t>(c); };
  return builder.character({{code(low), code(high)}});
}

bool is_all(Text digits, char c) {
  return digits.find_first_not_of(c) == Text::npos;
}

/// Numbers between `low` and `high`, which have the same number of digits.
Symbols between(GrammarBuilder& builder, Text low, Text high) {
  const auto n = static_cast<std::uint32_t>(low.size());
  if (n == 0) return {};
  if (is_all(low, '0') && is_all(high, '9'))
    return builder.repeat(digit(builder, '0', '9'), {n, n});
  const Text low_rest = low.substr(1);
  const Text high_rest = high.substr(1);
  const auto with = [&](char first, const Symbols& rest) {
    return GrammarBuilder::join(digit(builder, first, first), rest);
  };
  if (low[0] == high[0]) return with(low[0], between(builder, low_rest, high_rest));
  const std::string nines(n - 1, '9');
  const std::string zeros(n - 1, '0');
  std::vector<Symbols> alternatives{with(low[0], between(builder, low_rest, nines)),
                                    with(high[0], between(builder, zeros, high_rest))};
  if (low[0] + 1 < high[0]) {
    const Symbols inner =
        digit(builder, static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1));
    alternatives.push_back(GrammarBuilder::join(inner, between(builder, zeros, nines)));
  }
  return builder.choice(std::move(alternatives));
}

/// Adds the numbers from `low` to `high`. Precondition: 0 ≤ low.
void add_positive(GrammarBuilder& builder, std::int64_t low, std::int64_t high, Text sign,
                  std::vector<Symbols>& alternatives) {
  while (low <= high) {
    const std::string first = std::to_string(low);
    const std::string last = std::min(std::string(first.size(), '9'), std::to_string(high),
                                      [](const std::string& a, const std::string& b) {
                                        return a.size() != b.size() ? a.size() < b.size() : a < b;
                                      });
    alternatives.push_back(GrammarBuilder::join(builder.text(sign), between(builder, first, last)));
    low = std::stoll(last) + 1;
  }
}

}  // namespace

Symbols integer_range(GrammarBuilder& builder, std::int64_t low, std::int64_t high) {
  std::vector<Symbols> alternatives;
  if (low < 0) add_positive(builder, std::max<std::int64_t>(1, -high), -low, "-", alternatives);
  if (high >= 0) add_positive(builder, std::max<std::int64_t>(0, low), high, "", alternatives);
  return builder.choice(std::move(alternatives));
}

}  // namespace leasehold
