/// Compiles what schemas require of texts and numbers to symbols. Internal to worker/text/grammar.
#pragma once

#include "worker/text/grammar/schema/json_rules.hpp"
#include "worker/text/grammar/schema/schema_facts.hpp"

namespace leasehold {

/// Patterns and lengths that apply together are compiled once. Lifetime: facts, builder and rules
/// outlive it. Threads: one. Errors: those of SchemaFacts.
class SchemaScalars {
 public:
  SchemaScalars(SchemaFacts& facts, GrammarBuilder& builder, const JsonRules& json)
      : facts_(facts), context_(facts.context()), builder_(builder), json_(json) {}

  Result<Symbols> string(const SchemaCase& one);
  Result<Symbols> integer(const SchemaCase& one);
  Result<Symbols> number(const SchemaCase& one);

 private:
  /// Patterns and lengths that apply together to a text.
  struct TextBounds {
    std::vector<std::string> patterns;
    std::uint64_t min;
    std::optional<std::uint64_t> max;
    auto operator<=>(const TextBounds&) const = default;
  };
  struct LimitedText {
    Symbols text;
    bool has_length;  ///< False: the length is not checked.
  };

  using PatternText = std::pair<const OrderedJson*, std::string>;

  /// The patterns of the case, including those of its formats, with the keyword's value.
  Result<std::vector<PatternText>> patterns_of(const SchemaCase& one) const;
  Result<LimitedText> bounded_text(const SchemaCase& one, const std::vector<Pattern>& patterns,
                                   const CountRange& length);
  void add_unchecked_length(const SchemaCase& one);

  SchemaFacts& facts_;
  SchemaContext& context_;
  GrammarBuilder& builder_;
  const JsonRules& json_;
  std::map<TextBounds, LimitedText> texts_;
};

}  // namespace leasehold
