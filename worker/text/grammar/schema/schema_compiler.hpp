/// Compiles schemas to symbols; json_schema.hpp lists what is covered. Internal to
/// worker/text/grammar.
///
/// Each set of schemas that applies to some value becomes one rule. The rule is declared at its
/// first use and compiled later, so a schema may refer to itself.
#pragma once

#include <deque>

#include "worker/text/grammar/schema/json_rules.hpp"
#include "worker/text/grammar/schema/schema_values.hpp"

namespace leasehold {

/// Lifetime: context and builder outlive it. Threads: one.
class SchemaCompiler {
 public:
  SchemaCompiler(SchemaContext& context, GrammarBuilder& builder)
      : context_(context),
        builder_(builder),
        json_(builder),
        facts_(context),
        cases_(facts_),
        values_(facts_, cases_) {}

  Result<RuleId> read();

 private:
  struct Member {
    Symbols text;
    bool required;
  };
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
  /// The members of one object; see after_members.
  struct MemberList {
    std::vector<Member> declared;
    std::optional<Symbols> extra;
    CountRange count;
    std::map<std::pair<std::size_t, std::uint64_t>, Symbols> known;
  };

  /// The text of each pattern, and the `patternProperties` that has it.
  using NamePatterns = std::vector<std::pair<std::string, const OrderedJson*>>;

  // schema_compiler.cpp
  Symbols value(const Schemas& schemas);
  Result<Symbols> compile(const Schemas& schemas);
  Result<Symbols> compile_case(const SchemaCase& one);
  Result<Symbols> of_types(const SchemaCase& one);
  Symbols literal(const OrderedJson& value);
  const OrderedJson& place(const SchemaCase& one) const;

  // schema_objects.cpp
  Result<Symbols> object(const SchemaCase& one);
  Result<std::vector<Member>> members(const SchemaCase& one, const ObjectFacts& facts);
  Result<NamePatterns> name_patterns(const SchemaCase& one);
  Result<std::optional<Symbols>> extra_members(const SchemaCase& one, const ObjectFacts& facts);
  Result<void> add_extra(const SchemaCase& one, const TextAutomaton& names, const Schemas& schemas,
                         std::vector<Symbols>& all);
  Symbols after_members(MemberList& list, std::size_t next, std::uint64_t n);
  Symbols extra_list(const MemberList& list, std::uint64_t n);

  // schema_arrays.cpp
  Result<Symbols> array(const SchemaCase& one);
  Result<Symbols> element_list(const SchemaCase& one, const Repetition& count);
  Symbols with_leading_comma(const Symbols& what);
  Symbols with_separator(const Symbols& member, std::uint64_t n);
  Result<Repetition> repetition(const SchemaCase& one, const char* min, const char* max);

  // schema_scalars.cpp
  Result<Symbols> string(const SchemaCase& one);
  Result<LimitedText> bounded_text(const SchemaCase& one, const std::vector<Pattern>& patterns,
                                   const CountRange& length);
  void add_unchecked_length(const SchemaCase& one);
  Result<Symbols> integer(const SchemaCase& one);
  Result<Symbols> number(const SchemaCase& one);
  Symbols quoted(const Symbols& inside);

  SchemaContext& context_;
  GrammarBuilder& builder_;
  JsonRules json_;
  SchemaFacts facts_;
  SchemaCases cases_;
  SchemaValues values_;
  std::map<Schemas, RuleId> rules_;
  std::deque<Schemas> pending_;  ///< Sets whose rule is not yet compiled.
  std::map<SchemaCase, Symbols> by_case_;
  std::map<TextBounds, LimitedText> texts_;  ///< Compiled automata.
};

}  // namespace leasehold
