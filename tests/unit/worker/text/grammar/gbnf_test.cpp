#include "worker/text/grammar/gbnf.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/worker/text/grammar/earley.hpp"

namespace leasehold::testing {
namespace {

Grammar grammar_of(std::string_view text) {
  const Result<Grammar> grammar = parse_gbnf(text);
  INFO(text);
  if (!grammar) FAIL(grammar.error().detail);
  return *grammar;
}

struct Case {
  const char* grammar;
  std::vector<std::string> accepted;
  std::vector<std::string> refused;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {R"(root ::= "a" | "bc")", {"a", "bc"}, {"", "b", "abc", "ab"}},
      {R"(root ::= [a-c0-9_-]+)", {"a", "b9_-", "-"}, {"", "d", "a d"}},
      {R"(root ::= [^a-c])", {"d", "é", "🦙", "\n"}, {"a", "", "dd", "\x80", "\xc3"}},
      {R"(root ::= "x"*)", {"", "x", "xxxx"}, {"y", "xy"}},
      {R"(root ::= "xy"{2,3})", {"xyxy", "xyxyxy"}, {"xy", "xyxyxyxy", "xyx"}},
      {R"(root ::= "x"{2})", {"xx"}, {"x", "xxx"}},
      {R"(root ::= "x"{2,})", {"xx", "xxxxx"}, {"x", ""}},
      {R"(root ::= "x"{0,2} "y"?)", {"", "x", "xx", "y", "xxy"}, {"xxx", "yy"}},
      {R"(root ::= ("a" | "b" "c")+ "!")", {"a!", "bca!", "bcbc!"}, {"!", "b!", "ab!"}},
      {R"(root ::= .)", {"a", "é", "日", "🦙", "\n"}, {"", "ab", "\xff", "\xed\xa0\x80"}},
      {R"(root ::= "\x41\u00e9\U0001F999\n\t\\\"\[\]")", {"Aé🦙\n\t\\\"[]"}, {"A"}},
      {R"(root ::= [\]\[\\\-a])", {"]", "[", "\\", "-", "a"}, {"b"}},
      {R"(root ::= [à-ü] [日-本])", {"é日", "ü木"}, {"e日", "é"}},
      {"# comment\nroot ::= a # the rest\n  # more\na ::=\n  \"x\" |\n  \"y\"\n",
       {"x", "y"},
       {"xy"}},
      {"root ::= (\n  \"a\" # first\n  \"b\"\n | \"c\" )\n", {"ab", "c"}, {"a", "abc"}},
      {"root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "(()", ")("}},
      {"root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
       {"1", "1+2", "(1+22)+3"},
       {"+", "1+", "(1", "1)"}},
      // Ambiguous in several ways.
      {"root ::= a* b*\na ::= \"x\" | \"xx\"\nb ::= \"x\" | \"y\"", {"", "xxx", "xxyyx"}, {"z"}},
      // Repetitions of parts that may be empty.
      {R"(root ::= ("a"* "b"?)* "c")", {"c", "aabac", "bbc"}, {"a", "cc"}},
      {R"(root ::= (""  | "a"){3} "!")", {"!", "aaa!", "a!"}, {"aaaa!"}},
      {"a-Rule_1 ::= \"z\"\r\nroot ::= a-Rule_1\r\n", {"z"}, {""}},
  };
  return kCases;
}

struct InvalidGrammar {
  const char* grammar;
  const char* what;
};

const std::vector<InvalidGrammar>& invalid_grammars() {
  static const std::vector<InvalidGrammar> kInvalidGrammars{
      {"", "no rule named 'root'"},
      {"rot ::= \"a\"", "no rule named 'root'"},
      {"root ::= a", "line 1 column 10: rule 'a' is not defined"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2 column 1: rule 'root' is defined twice"},
      {"root = \"a\"", "line 1 column 6: expected '::='"},
      {"root ::= \"a", "line 1 column 10: this '\"' is not closed"},
      {"root ::= [a", "line 1 column 10: this '[' is not closed"},
      {"root ::= (\"a\"", "line 1 column 10: '(' is not closed"},
      {"root ::= \"a\" )", "line 1 column 14: expected the end of the line"},
      {"root ::= [z-a]", "line 1 column 11: the range ends before it begins"},
      {"root ::= \"\\q\"", "line 1 column 11: unknown escape"},
      {"root ::= \"\\xZ1\"", "line 1 column 11: expected 2 hex digits"},
      {"root ::= \"\\uD800\"", "line 1 column 11: expected 4 hex digits of a character"},
      {"root ::= \"é\" {3,2}", "line 1 column 14: the repetition ends before it begins"},
      {"root ::= \"a\"{x}", "line 1 column 14: expected a number"},
      {"root ::= \"a\"{1", "line 1 column 15: expected '}'"},
      {"root ::= *", "line 1 column 10: expected a literal"},
      {"root ::= <[5]>", "line 1 column 10: expected a literal"},
      {"root ::= root \"a\" | \"b\"", "rule 'root' is left recursive"},
      {"root ::= a\na ::= b \"x\" | \"y\"\nb ::= c\nc ::= a", "is left recursive"},
      {"root ::= root", "is left recursive"},  // harmless, but without any text
      {"root ::= \"z\" e\ne ::= o e \"x\" | \"y\"\no ::= \"\" | \"q\"",
       "rule 'e' is left recursive"},
      {"root ::= \"a\" root", "rule 'root' cannot be completed"},
      {"root ::= \"b\" | a\na ::= \"x\" b\nb ::= \"y\" a", "cannot be completed"},
      {"root ::= b | ([] | [] \"x\")\nb ::= \"y\"", "rule 'root' cannot"},
      {"root ::= []", "rule 'root' cannot be completed"},
      {"root ::= \"a\"{40000}", "more than"},
      {"root ::= .{60000}", "more than"},
      {"root ::= \"\xff\"", "not UTF-8 at byte 10"},
  };
  return kInvalidGrammars;
}

}  // namespace

TEST_CASE("gbnf: a grammar accepts exactly its texts") {
  for (const Case& one : cases()) {
    const Grammar grammar = grammar_of(one.grammar);
    for (const std::string& text : one.accepted) {
      CAPTURE(one.grammar, text);
      CHECK(accepts(grammar, text));
    }
    for (const std::string& text : one.refused) {
      CAPTURE(one.grammar, text);
      CHECK_FALSE(accepts(grammar, text));
    }
  }
}

TEST_CASE("gbnf: an invalid grammar is a BadRequest with position and cause") {
  for (const InvalidGrammar& wrong : invalid_grammars()) {
    CAPTURE(wrong.grammar);
    const Result<Grammar> grammar = parse_gbnf(wrong.grammar);
    REQUIRE_FALSE(grammar);
    CHECK(grammar.error().code == Errc::BadRequest);
    CHECK_THAT(grammar.error().detail, Catch::Contains(wrong.what));
  }
}

TEST_CASE("gbnf: deeply nested parentheses are refused") {
  const std::string deep = "root ::= " + std::string(5000, '(') + "\"a\"" + std::string(5000, ')');
  REQUIRE(parse_gbnf(deep).error().code == Errc::BadRequest);
}

}  // namespace leasehold::testing
