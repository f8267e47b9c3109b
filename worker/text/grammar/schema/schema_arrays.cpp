#include <fmt/format.h>

#include <algorithm>

#include "worker/text/grammar/schema/schema_compiler.hpp"

namespace leasehold {

Symbols SchemaCompiler::with_leading_comma(const Symbols& what) {
  return GrammarBuilder::join(json_["comma"], what);
}

/// Cuts a maximum beyond what a grammar can count.
Result<Repetition> SchemaCompiler::repetition(const SchemaCase& one, const char* min,
                                              const char* max) {
  const CountRange count = TRY(facts_.counts(one, min, max));
  if (count.min > kMaxRepetitions)
    return context_.error(place(one), fmt::format("{} is above {}", min, kMaxRepetitions));
  if (count.is_empty()) return context_.error(place(one), fmt::format("{} is above {}", min, max));
  Repetition result{.min = static_cast<std::uint32_t>(count.min), .max = {}};
  if (count.max)
    result.max = static_cast<std::uint32_t>(std::min<std::uint64_t>(*count.max, kMaxRepetitions));
  return result;
}

Result<Symbols> SchemaCompiler::array(const SchemaCase& one) {
  const Repetition count = TRY(repetition(one, "minItems", "maxItems"));
  return GrammarBuilder::join(builder_.text("["), TRY(element_list(one, count)),
                              builder_.text("]"));
}

Result<Symbols> SchemaCompiler::element_list(const SchemaCase& one, const Repetition& count) {
  const std::uint32_t most = count.max.value_or(UINT32_MAX);
  const auto n_fixed =
      static_cast<std::uint32_t>(std::min<std::size_t>(TRY(facts_.tuple_size(one)), most));
  std::vector<Symbols> fixed;
  for (std::uint32_t i = 0; i < n_fixed; ++i) fixed.push_back(value(TRY(facts_.element(one, i))));
  if (most == 0) return Symbols{};

  Symbols rest;  // all later elements
  if (most > n_fixed) {
    const Schemas schemas = TRY(facts_.element(one, n_fixed));
    const Symbols element = builder_.as_rule(value(schemas));
    if (fixed.empty()) fixed.push_back(element);
    const auto at_front = static_cast<std::uint32_t>(fixed.size());
    const auto minus = [at_front](std::uint32_t n) { return n > at_front ? n - at_front : 0; };
    const auto max = count.max ? std::optional(minus(*count.max)) : std::nullopt;
    rest = builder_.repeat(with_leading_comma(element), {minus(count.min), max});
  }
  rest = GrammarBuilder::join(rest, json_["line"]);
  for (auto i = static_cast<std::uint32_t>(fixed.size()); i-- > 0;) {
    const Symbols with = i > 0 ? GrammarBuilder::join(with_leading_comma(fixed[i]), rest)
                               : GrammarBuilder::join(json_["line"], fixed[i], rest);
    const Symbols without = i > 0 ? json_["line"] : Symbols{};
    rest = i < count.min ? builder_.as_rule(with) : builder_.choice({with, without});
  }
  return rest;
}

}  // namespace leasehold
