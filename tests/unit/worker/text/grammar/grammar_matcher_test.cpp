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

TEST_CASE("grammar matcher: divided work finds the same states") {
  const std::string grammar =
      "root ::= e\ne ::= t (\"-\" t)*\nt ::= [0-9]+ | \"[\" e \"]\" | t2\nt2 ::= "
      "[0-9] [0-9]";
  MatchedText whole(grammar);
  GrammarMatcher divided(std::make_shared<const Grammar>(*parse_gbnf(grammar)));
  const auto in_units = [&](auto call) {
    while (true) {
      WorkBudget one{1};
      const GrammarMatcher::State state = call(one);
      if (state != GrammarMatcher::kUnfinished) return state;
      REQUIRE(one.spent > 0);
    }
  };
  GrammarMatcher::State state = in_units([&](WorkBudget& one) { return divided.start(one); });
  for (const char c : std::string_view("[12-[3]]-4")) {
    const auto byte = static_cast<std::uint8_t>(c);
    state = in_units([&](WorkBudget& one) { return divided.next(state, byte, one); });
    REQUIRE(whole.take({&c, 1}));
    REQUIRE(state == whole.state);
    REQUIRE(divided.may_end(state) == whole.matcher.may_end(whole.state));
  }
}

TEST_CASE("grammar matcher: the work of a text does not depend on what was computed before") {
  const std::string grammar = "root ::= (\"a\" | \"ab\" | [a-c] [a-c]?)*";
  const auto work_of = [](MatchedText& matched, std::string_view text) {
    WorkBudget all = WorkBudget::unlimited();
    for (const char c : text)
      matched.state = matched.matcher.next(matched.state, static_cast<std::uint8_t>(c), all);
    return all.spent;
  };
  MatchedText fresh(grammar);
  MatchedText used(grammar);
  const auto start = used.state;
  REQUIRE(work_of(used, "ccc") > 0);
  used.state = start;
  REQUIRE(work_of(used, "abab") == work_of(fresh, "abab"));
  used.state = start;
  REQUIRE(work_of(used, "abab") == 0);
}

TEST_CASE("grammar matcher: every visit is counted, also of alternatives that are empty") {
  constexpr std::size_t kAlternatives = 1000;
  constexpr std::size_t kCopies = 50;
  std::string text = "root ::= \"x\"";
  for (std::size_t i = 0; i < kCopies; ++i) text += " e";
  text += "\ne ::= " + std::string(kAlternatives - 1, '|');
  MatchedText matched(text);
  WorkBudget all = WorkBudget::unlimited();
  matched.matcher.next(matched.state, 'x', all);
  CHECK(all.spent >= GrammarMatcher::kVisitUnits * kAlternatives * kCopies);
  CHECK(matched.matcher.busiest_rule() == "e");
}

TEST_CASE("grammar matcher: a generated rule is named by the rule that it is part of") {
  MatchedText matched("root ::= \"x\" part\npart ::= (\"a\" | \"b\" (\"c\" | \"d\"){40,60}){0,99}");
  WorkBudget all = WorkBudget::unlimited();
  for (const char c : std::string_view("xbcdcd"))
    matched.state = matched.matcher.next(matched.state, static_cast<std::uint8_t>(c), all);
  CHECK(matched.matcher.busiest_rule() == "part");
}

}  // namespace leasehold
