#include "worker/text/grammar/gbnf.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/unit/worker/text/grammar/earley.hpp"

namespace leasehold::testing {
namespace {

void check_gbnf(const std::string& grammar, const std::vector<std::string>& accepted,
                const std::vector<std::string>& refused) {
  CAPTURE(grammar);
  check_texts(parse_gbnf(grammar), accepted, refused);
}

/// The lengths of the texts of a rule that does not call itself, by adding up its symbols: a
/// reference for repetitions that are too long for Earley's recognizer.
class TextLengths {
 public:
  using Lengths = std::set<int>;

  explicit TextLengths(const Grammar& grammar) : grammar_(grammar) {}

  const Lengths& of_rule(std::uint32_t rule) {
    if (const auto known = known_.find(rule); known != known_.end()) return known->second;
    Lengths all;
    for (const std::uint32_t begin : grammar_.rules[rule].alternatives)
      all.merge(of_alternative(begin));
    return known_.emplace(rule, std::move(all)).first->second;
  }

 private:
  Lengths of_alternative(std::uint32_t begin) {
    int n_bytes = 0;
    Lengths all{0};
    for (auto at = begin; grammar_.symbols[at].kind != GrammarSymbol::Kind::End; ++at) {
      const GrammarSymbol symbol = grammar_.symbols[at];
      if (symbol.kind == GrammarSymbol::Kind::Bytes) {
        ++n_bytes;
        continue;
      }
      const Lengths& more = of_rule(symbol.index);
      Lengths sums;
      for (const int one : all)
        for (const int other : more) sums.insert(sums.end(), one + other);
      all = std::move(sums);
    }
    Lengths shifted;
    for (const int length : all) shifted.insert(shifted.end(), length + n_bytes);
    return shifted;
  }

  const Grammar& grammar_;
  std::map<std::uint32_t, Lengths> known_;
};

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
      {"root ::= \"\xff\"", "not UTF-8 at byte 10"},
  };
  for (const auto& [grammar, what] : kInvalidGrammars) {
    CAPTURE(grammar);
    check_bad_request(parse_gbnf(grammar), what);
  }
  std::string large = "root ::=";
  for (int i = 0; i < 90; ++i) large += " \"a" + std::to_string(i) + "\"{0,128}";
  check_bad_request(parse_gbnf(large), "more than 32768 symbols");
}

TEST_CASE("gbnf: long repetitions are exact") {
  const Result<Grammar> exactly = parse_gbnf("root ::= \"a\"{1030}");
  CHECK(accepts(exactly.value(), std::string(1030, 'a')));
  CHECK_FALSE(accepts(exactly.value(), std::string(1031, 'a')));
  CHECK(parse_gbnf("root ::= \"a\"{40000}"));
}

TEST_CASE("gbnf: a long repetition has texts of exactly its lengths") {
  const std::pair<int, int> kRepetitions[] = {
      {0, 1},    {0, 127},   {0, 128},  {0, 129},  {0, 191},     {0, 192},    {0, 193},
      {7, 135},  {130, 300}, {0, 1024}, {0, 1025}, {0, 1279},    {0, 1280},   {0, 1281},
      {3, 2000}, {1, 1026},  {5, 1030}, {0, 2600}, {1030, 1030}, {1100, 2500}};
  for (const auto& [min, max] : kRepetitions) {
    CAPTURE(min, max);
    const auto grammar =
        parse_gbnf("root ::= \"a\"{" + std::to_string(min) + "," + std::to_string(max) + "}");
    REQUIRE(grammar);
    std::set<int> expected;
    for (int n = min; n <= max; ++n) expected.insert(n);
    CHECK(TextLengths(*grammar).of_rule(grammar->root) == expected);
  }
}

TEST_CASE("gbnf: deeply nested parentheses are refused") {
  const std::string deep = "root ::= " + std::string(5000, '(') + "\"a\"" + std::string(5000, ')');
  REQUIRE(parse_gbnf(deep).error().code == Errc::BadRequest);
}

}  // namespace leasehold::testing
