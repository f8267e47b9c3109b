#include "worker/text/grammar/schema/json_rules.hpp"

#include "common/expects.hpp"
#include "worker/text/grammar/gbnf.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kJson = R"gbnf(
value   ::= object | array | string | number | boolean | null
object  ::= "{" (line member (comma member)* line)? "}"
member  ::= string colon value
array   ::= "[" (line value (comma value)* line)? "]"
string  ::= "\"" character* "\""
boolean ::= "true" | "false"
null    ::= "null"
colon   ::= ":" " "?
comma   ::= "," (" " | newline)?
line    ::= newline?
newline ::= "\r"? "\n" [ \t]{0,32}

number  ::= "-"? digits ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?
integer ::= "-"? digits
digits  ::= "0" | [1-9] [0-9]{0,15}

character ::= [^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" unit)
unit      ::= [0-9A-Ca-cE-Fe-f] hex{3} | [Dd] [0-7] hex{2} | [Dd] [89ABab] hex{2} "\\u" [Dd] [C-Fc-f] hex{2}
hex       ::= [0-9A-Fa-f]
)gbnf";

}  // namespace

JsonRules::JsonRules(GrammarBuilder& builder) {
  auto rules = add_gbnf_rules(kJson, builder);
  ensures(rules.has_value(), "the built-in grammar compiles");
  rules_ = *std::move(rules);
}

Symbols quoted(GrammarBuilder& builder, const Symbols& inside) {
  const Symbols quote = builder.text("\"");
  return GrammarBuilder::join(quote, inside, quote);
}

}  // namespace leasehold
