#include "worker/text/grammar/schema/schema_compiler.hpp"

#include <algorithm>

#include "worker/text/grammar/bounded_text.hpp"

namespace leasehold {
namespace {

/// Each literal is a parse of its own, so the texts of a longer list become an automaton, where
/// they share their beginnings.
constexpr std::size_t kMaxLiterals = 128;

}  // namespace

Result<RuleId> SchemaCompiler::read() {
  const RuleId root = builder_.declare("#");
  const Schemas whole{&context_.root()};
  rules_.emplace(whole, root);
  pending_.push_back(whole);
  while (!pending_.empty()) {
    const Schemas schemas = std::move(pending_.front());
    pending_.pop_front();
    TRY(context_.spend(*schemas.front(), 4));
    builder_.define(rules_.at(schemas), {TRY(compile(schemas))});
  }
  return root;
}

/// A rule for the values that satisfy all schemas.
Symbols SchemaCompiler::value(const Schemas& schemas) {
  Schemas set;
  for (const OrderedJson* schema : schemas) {
    const bool is_anything =
        *schema == OrderedJson(true) || (schema->is_object() && schema->empty());
    if (!is_anything && std::ranges::find(set, schema) == set.end()) set.push_back(schema);
  }
  if (set.empty()) return json_["value"];
  const auto [known, is_new] = rules_.emplace(set, RuleId{});
  if (is_new) {
    known->second = builder_.declare({});
    pending_.push_back(std::move(set));
  }
  return GrammarBuilder::rule(known->second);
}

Result<Symbols> SchemaCompiler::compile(const Schemas& schemas) {
  std::vector<Symbols> all;
  for (const SchemaCase& one : TRY(cases_.of(schemas))) {
    auto known = by_case_.find(one);
    if (known == by_case_.end())
      known = by_case_.emplace(one, builder_.as_rule(TRY(compile_case(one)))).first;
    if (builder_.is_full())
      return context_.error(*schemas.front(),
                            "the schema is too large up to here; make it smaller");
    if (std::ranges::find(all, known->second) == all.end()) all.push_back(known->second);
  }
  if (all.empty()) return builder_.character({});  // 'false': no text
  return builder_.choice(std::move(all));
}

Result<Symbols> SchemaCompiler::compile_case(const SchemaCase& one) {
  const auto values = TRY(values_.literals(one));
  if (!values) return of_types(one);
  std::vector<Symbols> all;
  std::vector<std::string> words;
  for (const OrderedJson* value : *values) {
    TRY(context_.spend(*value, 1));
    const bool is_word = values->size() > kMaxLiterals && value->is_string();
    if (is_word) words.push_back(value->get<std::string>());
    if (!is_word) all.push_back(literal(*value));
  }
  if (!words.empty())
    all.push_back(quoted(
        builder_, text_symbols(TextAutomaton::of_words(words).minimal(context_.work()), builder_)));
  if (all.empty()) return builder_.character({});
  return builder_.choice(std::move(all));
}

/// Matches the value in any layout, with its members in their order.
Symbols SchemaCompiler::literal(const OrderedJson& value) {
  if (!value.is_structured()) return builder_.text(value.dump());
  if (value.empty()) return builder_.text(value.dump());
  Symbols inside = builder_.text(value.is_array() ? "[" : "{");
  bool is_first = true;
  for (const auto& [key, part] : value.items()) {
    inside = GrammarBuilder::join(inside, json_[is_first ? "line" : "comma"]);
    is_first = false;
    if (value.is_object())
      inside = GrammarBuilder::join(inside, builder_.text(OrderedJson(key).dump()), json_["colon"]);
    inside = GrammarBuilder::join(inside, literal(part));
  }
  inside = GrammarBuilder::join(inside, json_["line"]);
  return GrammarBuilder::join(inside, builder_.text(value.is_array() ? "]" : "}"));
}

Result<Symbols> SchemaCompiler::of_types(const SchemaCase& one) {
  const unsigned types = TRY(facts_.types(one));
  std::vector<Symbols> all;
  if ((types & ObjectType) != 0) all.push_back(TRY(object(one)));
  if ((types & ArrayType) != 0) all.push_back(TRY(array(one)));
  if ((types & StringType) != 0) all.push_back(TRY(scalars_.string(one)));
  if ((types & FractionType) != 0) {
    all.push_back(TRY(scalars_.number(one)));
  } else if ((types & IntegerType) != 0) {
    all.push_back(TRY(scalars_.integer(one)));
  }
  if ((types & BooleanType) != 0) all.push_back(json_["boolean"]);
  if ((types & NullType) != 0) all.push_back(json_["null"]);
  if (all.empty()) return builder_.character({});
  return builder_.choice(std::move(all));
}

Result<Symbols> SchemaCompiler::array(const SchemaCase& one) {
  const Repetition count = TRY(facts_.repetition(one, "minItems", "maxItems"));
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
