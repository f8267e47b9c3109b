/// Compiles schemas to symbols, keyword by keyword; json_schema.hpp lists what is covered. Internal
/// to worker/text/grammar, because it includes all of nlohmann/json.
#pragma once

#include <deque>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "worker/text/grammar/json_rules.hpp"

namespace leasehold {

/// Members keep their order.
using OrderedJson = nlohmann::ordered_json;

/// Lifetime: document and builder outlive it. Threads: one.
class SchemaCompiler {
 public:
  SchemaCompiler(const OrderedJson& document, GrammarBuilder& builder)
      : document_(document), builder_(builder), json_(builder) {}

  Result<RuleId> read();

 private:
  /// A part of the document and its path: "#/properties/a".
  struct SchemaNode {
    const OrderedJson& schema;
    std::string path;
    SchemaNode at(const std::string& key) const;
  };
  struct Member {
    std::string name;
    Symbols text;
    bool required;
  };

  // schema_compiler.cpp: dispatch, references, combinators
  RuleId rule_for(const std::string& pointer);
  Result<Symbols> value(const SchemaNode& node);
  Result<Symbols> reference(const SchemaNode& node);
  Result<Symbols> alternatives(const SchemaNode& node, const char* keyword);
  Result<Symbols> all_of(const SchemaNode& node);
  Result<Symbols> typed(const SchemaNode& node);
  /// `type` as a list. Without `type`, the types that the other keywords apply to. Empty: any type.
  static Result<std::vector<std::string>> types_of(const SchemaNode& node);
  /// Errors: BadRequest for the first keyword that is neither in the list nor an annotation.
  static Result<void> check_keywords(const SchemaNode& node, const std::set<std::string>& known);
  Result<Symbols> of_type(const SchemaNode& node, const std::string& type);

  // schema_containers.cpp
  Result<Symbols> object(const SchemaNode& node);
  Result<std::vector<Member>> members(const SchemaNode& node);
  Result<std::optional<Symbols>> extra_member(const SchemaNode& node);
  Symbols key_other_than(const std::vector<std::u32string>& names);
  Symbols member_list(const std::vector<Member>& members, const std::optional<Symbols>& extra);
  Result<Symbols> array(const SchemaNode& node);
  Result<Symbols> element_list(const SchemaNode& node, const Repetition& count);
  Symbols with_leading_comma(const Symbols& what);

  // schema_scalars.cpp
  Result<Symbols> literals(const SchemaNode& node);
  Result<Symbols> string(const SchemaNode& node);
  Result<Symbols> integer(const SchemaNode& node);
  Result<Repetition> bounds(const SchemaNode& node, const char* min, const char* max);

  Symbols quoted(const Symbols& inside);
  static std::unexpected<Error> schema_error(const SchemaNode& node, const std::string& what);

  const OrderedJson& document_;
  GrammarBuilder& builder_;
  JsonRules json_;
  std::map<std::string, RuleId> by_pointer_;
  std::deque<std::string> pending_;  ///< References whose rule is not yet compiled.
};

}  // namespace leasehold
