/// JSON as a grammar (RFC 8259), for JSON mode and for schemas.
///
/// Narrower than JSON: blanks are allowed only where models write them, which is one space after
/// ":" and ",", and a line end with at most 32 blanks after "," and inside brackets that are not
/// empty. Numbers have at most 16 digits on each side of the point and an exponent below 100, so
/// that every JSON parser can represent them; surrogates in \u escapes come in pairs.
#pragma once

#include <map>
#include <string>

#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold {

/// The rules are value, object, array, string, character, number, integer, boolean and null; colon
/// and comma with their blanks; and line, an optional line end inside a bracket.
class JsonRules {
 public:
  explicit JsonRules(GrammarBuilder& builder);

  /// `name` is one of the rules above.
  Symbols operator[](const std::string& name) const {
    return GrammarBuilder::rule(rules_.at(name));
  }

 private:
  std::map<std::string, RuleId> rules_;
};

/// `inside` between quotation marks.
Symbols quoted(GrammarBuilder& builder, const Symbols& inside);

}  // namespace leasehold
