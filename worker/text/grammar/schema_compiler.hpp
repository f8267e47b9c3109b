/// Turns schemas into symbols, keyword by keyword. Internal to worker/text/grammar: it drags in all
/// of nlohmann/json. What is covered: json_schema.hpp.
#pragma once

#include <deque>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "worker/text/grammar/json_rules.hpp"

namespace leasehold {

/// Keeps the members of an object in the order they were written in.
using OrderedJson = nlohmann::ordered_json;

/// Lifetime: document and builder outlive it. Threads: one.
class SchemaCompiler {
 public:
  SchemaCompiler(const OrderedJson& document, GrammarBuilder& builder)
      : document_(document), builder_(builder), json_(builder) {}

  Result<RuleId> read();

 private:
  /// A part of the document and where it stands: "#/properties/a".
  struct Place {
    const OrderedJson& schema;
    std::string path;
    Place at(const std::string& key) const;
  };
  struct Bounds {
    std::uint32_t least = 0;
    std::optional<std::uint32_t> most;
  };
  struct Member {
    std::string name;
    Symbols text;
    bool required;
  };

  // schema_compiler.cpp: dispatch, references, combinators
  RuleId rule_for(const std::string& pointer);
  Result<Symbols> value(const Place& place);
  Result<Symbols> reference(const Place& place);
  Result<Symbols> alternatives(const Place& place, const char* keyword);
  Result<Symbols> all_of(const Place& place);
  Result<Symbols> typed(const Place& place);
  Result<Symbols> of_type(const Place& place, const std::string& type);

  // schema_containers.cpp
  Result<Symbols> object(const Place& place);
  Result<std::vector<Member>> members(const Place& place);
  Result<std::optional<Symbols>> extra_member(const Place& place);
  Symbols key_other_than(const std::vector<std::u32string>& names);
  Symbols member_list(const std::vector<Member>& members, const std::optional<Symbols>& extra);
  Result<Symbols> array(const Place& place);
  Result<Symbols> element_list(const Place& place, const Bounds& bounds);
  Symbols comma_then(const Symbols& what);

  // schema_scalars.cpp
  Result<Symbols> literals(const Place& place);
  Result<Symbols> string(const Place& place);
  Result<Symbols> integer(const Place& place);
  Result<Bounds> bounds(const Place& place, const char* least, const char* most);

  Symbols quoted(const Symbols& inside);
  static std::unexpected<Error> bad(const Place& place, const std::string& what);

  const OrderedJson& document_;
  GrammarBuilder& builder_;
  JsonRules json_;
  std::map<std::string, RuleId> by_pointer_;
  std::deque<std::string> pending_;  ///< References whose rule is not written yet.
};

/// `type` as a list; what the keywords speak of when there is none; empty: any type.
Result<std::vector<std::string>> types_of(const OrderedJson& schema, const std::string& path);

/// BadRequest for the first keyword that is neither one of these nor an annotation.
Result<void> check_keywords(const OrderedJson& schema, const std::string& path,
                            const std::set<std::string>& known);

}  // namespace leasehold
