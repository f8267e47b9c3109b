/// Compiles schemas to symbols; json_schema.hpp lists what is covered. Internal to
/// worker/text/grammar.
///
/// Each set of schemas that applies to some value becomes one rule. The rule is declared at its
/// first use and compiled later, so a schema may refer to itself.
#pragma once

#include <deque>

#include "worker/text/grammar/schema/schema_scalars.hpp"
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
        values_(facts_, cases_),
        scalars_(facts_, builder, json_) {}

  Result<RuleId> read();

 private:
  struct Member {
    Symbols text;
    bool required;
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
  Result<Symbols> array(const SchemaCase& one);
  Result<Symbols> element_list(const SchemaCase& one, const Repetition& count);

  // schema_objects.cpp
  Result<Symbols> object(const SchemaCase& one);
  Result<std::vector<Member>> members(const SchemaCase& one, const ObjectFacts& facts);
  Result<NamePatterns> name_patterns(const SchemaCase& one);
  Result<std::optional<Symbols>> extra_members(const SchemaCase& one, const ObjectFacts& facts);
  Result<void> add_extra(const SchemaCase& one, const TextAutomaton& names, const Schemas& schemas,
                         std::vector<Symbols>& all);
  Symbols after_members(MemberList& list, std::size_t next, std::uint64_t n);
  Symbols extra_list(const MemberList& list, std::uint64_t n);

  Symbols with_leading_comma(const Symbols& what);
  Symbols with_separator(const Symbols& member, std::uint64_t n);

  SchemaContext& context_;
  GrammarBuilder& builder_;
  JsonRules json_;
  SchemaFacts facts_;
  SchemaCases cases_;
  SchemaValues values_;
  SchemaScalars scalars_;
  std::map<Schemas, RuleId> rules_;
  std::deque<Schemas> pending_;  ///< Sets whose rule is not yet compiled.
  std::map<SchemaCase, Symbols> by_case_;
};

}  // namespace leasehold
