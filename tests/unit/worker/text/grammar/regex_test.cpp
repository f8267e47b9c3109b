// Regular expressions as grammars, and words as expressions.
#include "worker/text/grammar/regex.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/worker/text/grammar/earley.hpp"
#include "worker/text/grammar/grammar_matcher.hpp"

namespace leasehold::testing {
namespace {

Result<Grammar> compiled_regex(std::string_view regex) {
  WorkBudget work;
  return compile_regex(regex, work);
}

void check_regex(const std::string& regex, const std::vector<std::string>& accepted,
                 const std::vector<std::string>& refused) {
  INFO(regex);
  check_texts(compiled_regex(regex), accepted, refused);
}

}  // namespace

TEST_CASE("regex: the whole text matches, with and without anchors") {
  check_regex("yes|no", {"yes", "no"}, {"", "yesno", " yes", "no "});
  check_regex("^yes|no$", {"yes", "no"}, {"yes!", "no."});
  check_regex("^(yes|no)$", {"yes", "no"}, {"yes!"});
  check_regex(R"(\d{3}-[a-f]+\.?)", {"123-abc", "000-f."}, {"12-abc", "123-", "123-abcx"});
  check_regex(R"("[^"\\]*")", {R"("é")", R"("")"}, {R"("\")", R"(é)"});
  check_regex("a.c|", {"abc", "aéc", ""}, {"a\nc", "ac"});
}

TEST_CASE("regex: what is not supported is refused with its position") {
  for (const char* wrong : {"(", "a)", "(?=a)b", R"(\bword)", "a**", "[z-a]", R"(\p{L})"}) {
    CAPTURE(wrong);
    const auto refused = compiled_regex(wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::BadRequest);
    CHECK_THAT(refused.error().detail,
               Catch::StartsWith("regular expression: ") && Catch::Contains("at byte"));
  }
}

TEST_CASE("regex: a text becomes an expression that matches it alone") {
  for (const std::string text :
       {"a.b", R"(\d+)", "(x|y)*", "[1]{2}?", "^$", "é\n\t\"", "x y", "-/"}) {
    CAPTURE(text);
    check_regex(regex_of_text(text), {text}, {text + "x", ""});
  }
}

TEST_CASE("regex: a thousand words with a common beginning are followed with few parses") {
  std::string regex;
  for (int i = 0; i < 1000; ++i) regex += (i == 0 ? "" : "|") + ("word " + std::to_string(i));
  auto grammar = compiled_regex(regex);
  REQUIRE(grammar);
  GrammarMatcher matcher(std::make_shared<const Grammar>(*std::move(grammar)));
  auto state = matcher.start();
  for (const char c : std::string("word 999")) {
    WorkBudget work = WorkBudget::unlimited();
    state = matcher.next(matcher.retain(state).first, static_cast<std::uint8_t>(c), work);
    REQUIRE_FALSE(matcher.overflowed());
  }
  CHECK(matcher.must_end(state));
}

}  // namespace leasehold::testing
