#include "worker/text/grammar/json_rules.hpp"

#include "common/expects.hpp"
#include "worker/text/grammar/gbnf.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kJson = R"gbnf(
value   ::= object | array | string | number | boolean | null
object  ::= "{" ws (member ("," ws member)*)? "}"
member  ::= string ":" ws value ws
array   ::= "[" ws (value ws ("," ws value ws)*)? "]"
string  ::= "\"" character* "\""
boolean ::= "true" | "false"
null    ::= "null"
ws      ::= (" " | "\n" [ \t]{0,32})?

number  ::= "-"? digits ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?
integer ::= "-"? digits
digits  ::= "0" | [1-9] [0-9]{0,15}

character ::= [^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" unit)
unit      ::= [0-9A-Ca-cE-Fe-f] hex{3} | [Dd] [0-7] hex{2} | [Dd] [89ABab] hex{2} "\\u" [Dd] [C-Fc-f] hex{2}
hex       ::= [0-9A-Fa-f]

# RFC 3339, with the days that months have
date      ::= year "-" (long-month "-" day31 | short-month "-" day30 | "02-" day28) | leap-year "-02-29"
year      ::= [0-9]{4}
leap-year ::= [0-9]{2} ("0" [48] | [2468] [048] | [13579] [26]) | ([02468] [048] | [13579] [26]) "00"
long-month  ::= "0" [13578] | "1" [02]
short-month ::= "0" [469] | "11"
day28     ::= "0" [1-9] | "1" [0-9] | "2" [0-8]
day30     ::= day28 | "29" | "30"
day31     ::= day30 | "31"
time      ::= hour ":" sixty ":" sixty ("." [0-9]{1,9})? ("Z" | [-+] hour ":" sixty)
hour      ::= [01] [0-9] | "2" [0-3]
sixty     ::= [0-5] [0-9]
date-time ::= date "T" time
uuid      ::= hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12}
)gbnf";

}  // namespace

JsonRules::JsonRules(GrammarBuilder& builder) {
  auto rules = add_gbnf_rules(kJson, builder);
  ensures(rules.has_value(), "the built-in grammar compiles");
  rules_ = *std::move(rules);
}

}  // namespace leasehold
