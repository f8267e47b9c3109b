#include "worker/text/grammar/grammar_matcher.hpp"

#include <catch2/catch.hpp>

#include "worker/text/grammar/gbnf.hpp"

namespace leasehold {
namespace {

struct MatchedText {
  GrammarMatcher matcher;
  GrammarMatcher::State state = 0;

  explicit MatchedText(std::string_view text)
      : matcher(std::make_shared<const Grammar>(*parse_gbnf(text))), state(matcher.start()) {}

  bool take(std::string_view bytes) {
    for (const char c : bytes) {
      state = matcher.retain(state).first;
      state = matcher.next(state, static_cast<std::uint8_t>(c));
    }
    return state != GrammarMatcher::kDead;
  }
};

}  // namespace

TEST_CASE("grammar matcher: a text ends where it may and where it must") {
  MatchedText optional(R"(root ::= "a" "b"?)");
  REQUIRE_FALSE(optional.matcher.may_end(optional.state));
  REQUIRE(optional.take("a"));
  REQUIRE(optional.matcher.may_end(optional.state));
  REQUIRE_FALSE(optional.matcher.must_end(optional.state));
  REQUIRE(optional.take("b"));
  REQUIRE(optional.matcher.must_end(optional.state));
  REQUIRE_FALSE(optional.take("c"));
  REQUIRE_FALSE(optional.matcher.may_end(optional.state));
}

TEST_CASE("grammar matcher: loops need no depth, and nesting is bounded") {
  MatchedText loop(R"(root ::= ("a" | "b" "c")*)");
  for (int i = 0; i < 5000; ++i) REQUIRE(loop.take("abc"));
  REQUIRE(loop.matcher.may_end(loop.state));

  MatchedText nested(R"g(root ::= "(" root ")" | "x")g");
  int depth = 0;
  while (nested.take("(")) ++depth;
  REQUIRE(depth > 900);
  REQUIRE(depth <= static_cast<int>(GrammarMatcher::kMaxDepth));
  REQUIRE_FALSE(nested.matcher.overflowed());
}

TEST_CASE("grammar matcher: dropped states are computed again") {
  // Counts to 3000: more states than the matcher keeps.
  MatchedText counted(R"(root ::= "a"{3000} "b")");
  for (int i = 0; i < 3000; ++i) REQUIRE(counted.take("a"));
  REQUIRE_FALSE(counted.matcher.overflowed());
  REQUIRE(counted.take("b"));
  REQUIRE(counted.matcher.must_end(counted.state));
}

TEST_CASE("grammar matcher: too many readings set overflowed") {
  std::string text = "root ::= r0";
  for (int i = 1; i < 600; ++i) text += " | r" + std::to_string(i);
  for (int i = 0; i < 600; ++i)
    text += "\nr" + std::to_string(i) + " ::= \"aa" + std::to_string(i) + "\"";
  MatchedText ambiguous(text);
  ambiguous.take("a");
  REQUIRE(ambiguous.matcher.overflowed());
}

}  // namespace leasehold
