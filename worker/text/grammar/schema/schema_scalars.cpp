#include "worker/text/grammar/schema/schema_scalars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "worker/text/grammar/bounded_text.hpp"
#include "worker/text/grammar/schema/number_range.hpp"
#include "worker/text/grammar/schema/schema_formats.hpp"

namespace leasehold {
namespace {

/// The default bound of multiples, for which each remainder needs its own rules.
constexpr std::int64_t kMaxUnboundedMultiple = 999'999'999;

/// The integer nearest to the bound on the allowed side.
std::int64_t nearest_integer(const NumericBound& bound, bool upper) {
  const double exact = bound.value->get<double>();
  const auto max = static_cast<double>(kMaxSafeInteger);
  const double whole = std::clamp(upper ? std::floor(exact) : std::ceil(exact), -max, max);
  const auto nearest = static_cast<std::int64_t>(whole);
  const bool is_hit = whole == exact && bound.exclusive;
  return is_hit ? nearest + (upper ? -1 : 1) : nearest;
}

/// The bound that implies all others; nothing if there are none. `is_tighter` compares two values.
template <class Compare>
std::optional<DecimalBound> tightest(const std::vector<NumericBound>& bounds, Compare is_tighter) {
  std::optional<DecimalBound> best;
  for (const NumericBound& bound : bounds) {
    const DecimalBound next{Decimal::parse(bound.value->dump()), bound.exclusive};
    if (!best || is_tighter(next.value, best->value) ||
        (next.value == best->value && next.exclusive))
      best = next;
  }
  return best;
}

/// Most steps to build the automaton of one pattern and to cut it to its length.
constexpr std::size_t kMaxTextSteps = 10'000;

}  // namespace

/// A single pattern keeps its structure, which is smaller than an automaton, unless it must be cut
/// to the length. A length without a pattern becomes a repetition.
Result<Symbols> SchemaScalars::string(const SchemaCase& one) {
  const CountRange length = TRY(facts_.counts(one, "minLength", "maxLength"));
  std::vector<Pattern> patterns;
  TextBounds bounds{.patterns = {}, .min = length.min, .max = length.max};
  for (auto& [at, text] : TRY(patterns_of(one))) {
    auto pattern = TRY(facts_.parsed(*at, text));
    if (!pattern) continue;
    patterns.push_back(*std::move(pattern));
    bounds.patterns.push_back(std::move(text));
  }
  if (patterns.size() == 1 && length.contains(lengths_of(patterns[0])))
    return quoted(builder_, text_symbols(patterns[0], builder_));
  if (!patterns.empty()) {
    auto known = texts_.find(bounds);
    if (known == texts_.end())
      known = texts_.emplace(bounds, TRY(bounded_text(one, patterns, length))).first;
    if (!known->second.has_length) add_unchecked_length(one);
    return quoted(builder_, known->second.text);
  }
  const bool has_length = length.min > 0 || length.max;
  if (!has_length) return json_["string"];
  const Repetition times = TRY(facts_.repetition(one, "minLength", "maxLength"));
  return quoted(builder_, builder_.repeat(json_["character"], times));
}

Result<std::vector<SchemaScalars::PatternText>> SchemaScalars::patterns_of(
    const SchemaCase& one) const {
  std::vector<PatternText> all;
  for (const OrderedJson* part : one.parts) {
    for (const char* keyword : {"pattern", "format"}) {
      const auto found = part->find(keyword);
      if (found == part->end()) continue;
      if (!found->is_string()) return context_.error(*found, "expected text");
      auto text = found->get<std::string>();
      const bool is_format = keyword == std::string_view("format");
      if (is_format) text = pattern_of_format(text);
      if (!is_format || !text.empty()) all.emplace_back(&*found, std::move(text));
    }
  }
  return all;
}

/// If the length needs too large an automaton, strict mode refuses it, and lenient mode does not
/// check it.
Result<SchemaScalars::LimitedText> SchemaScalars::bounded_text(const SchemaCase& one,
                                                               const std::vector<Pattern>& patterns,
                                                               const CountRange& length) {
  const bool is_one = patterns.size() == 1;
  const bool has_length = length.min > 0 || length.max;
  WorkBudget trial{.left = std::min(context_.work().left, kMaxTextSteps)};
  const auto all = is_one ? automaton_of(patterns[0], trial) : TRY(facts_.texts_of_patterns(one));
  const auto within = all && has_length ? within_lengths(*all, length, trial) : std::nullopt;
  TRY(context_.spend(facts_.place(one), trial.spent));
  if (within) return LimitedText{text_symbols(*within, builder_), true};
  if (has_length && context_.is_strict())
    return context_.strict_error(
        facts_.place(one),
        "'minLength' and 'maxLength' beside this pattern need too many rules; "
        "make the pattern simpler, or write the length into its repetitions");
  if (!is_one) TRY(context_.spend(facts_.place(one), all->states().size()));
  return LimitedText{is_one ? text_symbols(patterns[0], builder_) : text_symbols(*all, builder_),
                     !has_length};
}

void SchemaScalars::add_unchecked_length(const SchemaCase& one) {
  for (const OrderedJson* part : one.parts)
    for (const char* keyword : {"minLength", "maxLength"})
      if (part->contains(keyword))
        context_.add_unchecked(*part, fmt::format("'{}' beside 'pattern'", keyword));
}

Result<Symbols> SchemaScalars::integer(const SchemaCase& one) {
  const NumberFacts facts = TRY(facts_.numbers(one));
  std::int64_t low = -kMaxSafeInteger;
  std::int64_t high = kMaxSafeInteger;
  for (const NumericBound& bound : facts.low) low = std::max(low, nearest_integer(bound, false));
  for (const NumericBound& bound : facts.high) high = std::min(high, nearest_integer(bound, true));
  std::uint64_t step = 1;
  for (const std::uint64_t other : facts.multiples_of) {
    step = std::lcm(step, other);
    if (step > static_cast<std::uint64_t>(kMaxSafeInteger))
      return context_.error(facts_.place(one), "multipleOf is too large");
  }
  if (low > high) return context_.error(facts_.place(one), "no integer is within the bounds");
  if (step == 1) return integer_range(builder_, low, high);
  if (low < -kMaxUnboundedMultiple && -kMaxUnboundedMultiple < high) low = -kMaxUnboundedMultiple;
  if (high > kMaxUnboundedMultiple && kMaxUnboundedMultiple > low) high = kMaxUnboundedMultiple;
  TRY(context_.spend(facts_.place(one), 1000));
  const auto all = multiples(builder_, step, low, high);
  if (all) return *all;
  return context_.error(facts_.place(one),
                        fmt::format("'multipleOf' {} has too many multiples within the "
                                    "bounds; set minimum and maximum",
                                    step));
}

Result<Symbols> SchemaScalars::number(const SchemaCase& one) {
  const NumberFacts facts = TRY(facts_.numbers(one));
  if (!facts.multiples_of.empty()) return integer(one);
  if (facts.low.empty() && facts.high.empty()) return json_["number"];
  const auto low = tightest(facts.low, std::greater());
  const auto high = tightest(facts.high, std::less());
  if (low && high && low->value > high->value)
    return context_.error(facts_.place(one), "no number is within the bounds");
  TRY(context_.spend(facts_.place(one), 100));
  return number_range(builder_, low, high);
}

}  // namespace leasehold
