#include "worker/text/grammar/gbnf.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/worker/text/grammar/earley.hpp"

namespace leasehold::testing {
namespace {

void check_gbnf(const std::string& grammar, const std::vector<std::string>& accepted,
                const std::vector<std::string>& refused) {
  CAPTURE(grammar);
  check_texts(parse_gbnf(grammar), accepted, refused);
}

}  // namespace

TEST_CASE("gbnf: a grammar accepts exactly its texts") {
  check_gbnf(R"(root ::= "a" | "bc")", {"a", "bc"}, {"", "b", "abc", "ab"});
  check_gbnf(R"(root ::= [a-c0-9_-]+)", {"a", "b9_-", "-"}, {"", "d", "a d"});
  check_gbnf(R"(root ::= [^a-c])", {"d", "é", "🦙", "\n"}, {"a", "", "dd", "\x80", "\xc3"});
  check_gbnf(R"(root ::= "x"*)", {"", "x", "xxxx"}, {"y", "xy"});
  check_gbnf(R"(root ::= "xy"{2,3})", {"xyxy", "xyxyxy"}, {"xy", "xyxyxyxy", "xyx"});
  check_gbnf(R"(root ::= "x"{2})", {"xx"}, {"x", "xxx"});
  check_gbnf(R"(root ::= "x"{2,})", {"xx", "xxxxx"}, {"x", ""});
  check_gbnf(R"(root ::= "x"{0,2} "y"?)", {"", "x", "xx", "y", "xxy"}, {"xxx", "yy"});
  check_gbnf(R"(root ::= ("a" | "b" "c")+ "!")", {"a!", "bca!", "bcbc!"}, {"!", "b!", "ab!"});
  check_gbnf(R"(root ::= .)", {"a", "é", "日", "🦙", "\n"}, {"", "ab", "\xff", "\xed\xa0\x80"});
  check_gbnf(R"(root ::= "\x41\u00e9\U0001F999\n\t\\\"\[\]")", {"Aé🦙\n\t\\\"[]"}, {"A"});
  check_gbnf(R"(root ::= [\]\[\\\-a])", {"]", "[", "\\", "-", "a"}, {"b"});
  check_gbnf(R"(root ::= [à-ü] [日-本])", {"é日", "ü木"}, {"e日", "é"});
  check_gbnf("# comment\nroot ::= a # the rest\n  # more\na ::=\n  \"x\" |\n  \"y\"\n", {"x", "y"},
             {"xy"});
  check_gbnf("root ::= (\n  \"a\" # first\n  \"b\"\n | \"c\" )\n", {"ab", "c"}, {"a", "abc"});
  check_gbnf("root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "(()", ")("});
  check_gbnf("root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
             {"1", "1+2", "(1+22)+3"}, {"+", "1+", "(1", "1)"});
  // Ambiguous in several ways.
  check_gbnf("root ::= a* b*\na ::= \"x\" | \"xx\"\nb ::= \"x\" | \"y\"", {"", "xxx", "xxyyx"},
             {"z"});
  // Repetitions of parts that may be empty.
  check_gbnf(R"(root ::= ("a"* "b"?)* "c")", {"c", "aabac", "bbc"}, {"a", "cc"});
  check_gbnf(R"(root ::= (""  | "a"){3} "!")", {"!", "aaa!", "a!"}, {"aaaa!"});
  check_gbnf("a-Rule_1 ::= \"z\"\r\nroot ::= a-Rule_1\r\n", {"z"}, {""});
}

TEST_CASE("gbnf: an invalid grammar is a BadRequest with position and cause") {
  const std::pair<const char*, const char*> kInvalidGrammars[] = {
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
      {"root ::= \"a\"{0,900} \"b\"{0,900} \"c\"{0,900} \"d\"{0,900} \"e\"{0,900} \"f\"{0,900} "
       "\"g\"{0,900} \"h\"{0,900} \"i\"{0,900} \"j\"{0,900}",
       "more than"},
      {"root ::= \"\xff\"", "not UTF-8 at byte 10"},
  };
  for (const auto& [grammar, what] : kInvalidGrammars) {
    CAPTURE(grammar);
    check_bad_request(parse_gbnf(grammar), what);
  }
}

TEST_CASE("gbnf: long repetitions are exact") {
  const Result<Grammar> exactly = parse_gbnf("root ::= \"a\"{1030}");
  CHECK(accepts(exactly.value(), std::string(1030, 'a')));
  CHECK_FALSE(accepts(exactly.value(), std::string(1031, 'a')));
  CHECK(parse_gbnf("root ::= \"a\"{40000}"));
}

TEST_CASE("gbnf: deeply nested parentheses are refused") {
  const std::string deep = "root ::= " + std::string(5000, '(') + "\"a\"" + std::string(5000, ')');
  REQUIRE(parse_gbnf(deep).error().code == Errc::BadRequest);
}

}  // namespace leasehold::testing
