/// Texts cut to bounds of length, against a matcher of patterns that knows no automata.
#include "worker/text/grammar/bounded_text.hpp"

#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "tests/unit/worker/text/grammar/compiled_schema.hpp"
#include "tests/unit/worker/text/grammar/earley.hpp"
#include "worker/text/grammar/grammar_matcher.hpp"

namespace leasehold::testing {
namespace {

using State = GrammarMatcher::State;
using Ends = std::set<std::size_t>;

Ends match_ends(const Pattern& pattern, std::string_view text, const Ends& begins);

Ends match_ends_of_repeat(const Pattern& repeat, std::string_view text, Ends at) {
  const auto [min, max] = repeat.times;
  for (std::uint32_t n = 0; n < min; ++n) at = match_ends(repeat.parts[0], text, at);
  Ends all = at;
  for (std::uint32_t n = min; !at.empty() && (!max || n < *max); ++n) {
    Ends next = match_ends(repeat.parts[0], text, at);
    std::erase_if(next, [&](std::size_t end) { return all.contains(end); });
    all.insert(next.begin(), next.end());
    at = std::move(next);
  }
  return all;
}

/// Where a match may end that begins at one of the positions.
Ends match_ends(const Pattern& pattern, std::string_view text, const Ends& begins) {
  Ends ends;
  switch (pattern.kind) {
    case Pattern::Kind::Character:
      for (const std::size_t at : begins)
        for (const CodePoints& range : pattern.characters)
          if (at < text.size() && range.low <= std::uint32_t(text[at]) &&
              std::uint32_t(text[at]) <= range.high)
            ends.insert(at + 1);
      return ends;
    case Pattern::Kind::Sequence:
      ends = begins;
      for (const Pattern& part : pattern.parts) ends = match_ends(part, text, ends);
      return ends;
    case Pattern::Kind::Choice:
      for (const Pattern& part : pattern.parts) ends.merge(match_ends(part, text, begins));
      return ends;
    case Pattern::Kind::Repeat:
      return match_ends_of_repeat(pattern, text, begins);
    case Pattern::Kind::Front:
    case Pattern::Kind::Back:
      break;
  }
  return {};
}

bool fits(const Pattern& pattern, const CountRange& length, std::string_view text) {
  const bool has_length = length.min <= text.size() && (!length.max || text.size() <= *length.max);
  return has_length && match_ends(pattern, text, {0}).contains(text.size());
}

std::string any_pattern(SeededRandom& random, int nesting) {
  static const char* const kTimes[] = {"", "", "*", "+", "?", "{2}", "{0,3}", "{2,5}", "{3,}"};
  std::string all;
  for (auto n = 1 + random.below(3); n > 0; --n) {
    if (nesting > 0 && random.below(3) == 0) {
      all += "(" + any_pattern(random, nesting - 1) + "|" + any_pattern(random, nesting - 1) + ")";
    } else {
      static const char* const kCharacters[] = {"a", "b", "[ab]"};
      all += kCharacters[random.below(3)];
    }
    all += kTimes[random.below(std::size(kTimes))];
  }
  return all;
}

/// A text of the pattern; a repetition without an end comes up to `most` times.
std::string any_text(const Pattern& pattern, SeededRandom& random, std::uint32_t most) {
  std::string text;
  switch (pattern.kind) {
    case Pattern::Kind::Character:
      return {static_cast<char>(pattern.characters[random.below(pattern.characters.size())].low)};
    case Pattern::Kind::Sequence:
      for (const Pattern& part : pattern.parts) text += any_text(part, random, most);
      return text;
    case Pattern::Kind::Choice:
      return any_text(pattern.parts[random.below(pattern.parts.size())], random, most);
    case Pattern::Kind::Repeat: {
      const auto [min, max] = pattern.times;
      for (auto n = min + random.below(max.value_or(min + most) - min + 1); n > 0; --n)
        text += any_text(pattern.parts[0], random, most / 8);
      return text;
    }
    case Pattern::Kind::Front:
    case Pattern::Kind::Back:
      break;
  }
  return text;
}

std::optional<BoundedText> bounded(const Pattern& pattern, const CountRange& length) {
  WorkBudget work;
  const auto all = automaton_of(pattern, work);
  return all ? within_lengths(*all, length, work) : std::nullopt;
}

/// Follows texts; keeps what it knows from text to text.
class Follower {
 public:
  explicit Follower(const BoundedText& texts) {
    GrammarBuilder builder;
    const RuleId root = builder.declare("root");
    builder.define(root, {text_symbols(texts, builder)});
    auto grammar = builder.finish_reachable(root);
    if (grammar) matcher_.emplace(std::make_shared<const Grammar>(*std::move(grammar)));
  }
  bool accepts(std::string_view text) {
    if (!matcher_) return false;  // no text at all
    State state = matcher_->start();
    for (const char c : text) {
      WorkBudget work = WorkBudget::unlimited();
      state = matcher_->next(matcher_->retain(state).first, static_cast<std::uint8_t>(c), work);
      most_work = std::max(most_work, work.spent);
      REQUIRE_FALSE(matcher_->overflowed());
    }
    return matcher_->may_end(state);
  }

  std::size_t most_work = 0;  ///< Of one character.

 private:
  std::optional<GrammarMatcher> matcher_;
};

void add_texts(std::string text, std::size_t most, std::vector<std::string>& all) {
  all.push_back(text);
  if (text.size() == most) return;
  add_texts(text + "a", most, all);
  add_texts(text + "b", most, all);
}

}  // namespace

TEST_CASE("bounded text: small texts are those of the pattern that have the length") {
  std::vector<std::string> everything;
  add_texts("", 9, everything);
  SeededRandom random(20261123);
  int n_accepted = 0;
  int n_exact = 0;
  for (int round = 0; round < 250; ++round) {
    const std::string text = "^" + any_pattern(random, 2) + "$";
    CountRange length{.min = random.below(5), .max = {}};
    if (random.below(4) != 0) length.max = length.min + random.below(6);
    CAPTURE(text, length.min, length.max.value_or(0));
    const auto pattern = parse_pattern(text);
    REQUIRE(pattern);
    const auto texts = bounded(*pattern, length);
    if (!texts) continue;  // its automaton is too large
    n_exact += texts->is_incomplete ? 0 : 1;
    Follower follower(*texts);
    for (const std::string& one : everything) {
      const bool expected = fits(*pattern, length, one);
      const bool accepted = follower.accepts(one);
      n_accepted += accepted ? 1 : 0;
      if (accepted == expected || (texts->is_incomplete && !accepted)) continue;
      CAPTURE(one);
      CHECK(accepted == expected);
    }
  }
  CHECK(n_exact > 200);
  CHECK(n_accepted > 10'000);
}

TEST_CASE("bounded text: long texts are texts of the pattern that have the length") {
  SeededRandom random(7);
  int n_accepted = 0;
  int n_missing = 0;
  int n_shared = 0;
  std::size_t most_work = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string text =
        "^" + any_pattern(random, 1) + "(a*b|b{9})" + any_pattern(random, 1) + "$";
    CountRange length{.min = random.below(40), .max = {}};
    length.max = 150 + random.below(150);
    CAPTURE(text, length.min, *length.max);
    const auto pattern = parse_pattern(text);
    REQUIRE(pattern);
    const auto texts = bounded(*pattern, length);
    if (!texts) continue;
    n_shared += texts->is_incomplete ? 1 : 0;
    Follower follower(*texts);
    for (int n = 0; n < 20; ++n) {
      const std::string one = any_text(*pattern, random, 10 + std::uint32_t(random.below(200)));
      const bool expected = fits(*pattern, length, one);
      const bool accepted = follower.accepts(one);
      n_accepted += accepted ? 1 : 0;
      n_missing += expected && !accepted ? 1 : 0;
      CAPTURE(one);
      CHECK((!accepted || expected));
      CHECK((texts->is_incomplete || accepted == expected));
    }
    most_work = std::max(most_work, follower.most_work);
  }
  CAPTURE(n_accepted, n_missing, n_shared, most_work);
  CHECK(n_shared > 10);
  CHECK(n_accepted > 300);
  CHECK(n_missing * 3 < n_accepted);
  CHECK(most_work < 200);
}

TEST_CASE("bounded text: one growing part is exact at the very bound, in few rules") {
  const auto pattern = parse_pattern("^ab+(a{1,3})?$");
  REQUIRE(pattern);
  const auto texts = bounded(*pattern, {.min = 5, .max = 3000});
  REQUIRE(texts);
  CHECK_FALSE(texts->is_incomplete);
  CHECK(texts->states.size() < 40);
  Follower follower(*texts);
  for (const std::size_t size : {4, 5, 6, 1500, 2996, 2997, 2998, 2999, 3000, 3001}) {
    for (const std::string end : {"", "a", "aa", "aaa"}) {
      const std::string one = "a" + std::string(size - 1 - end.size(), 'b') + end;
      CAPTURE(size, end);
      CHECK(follower.accepts(one) == (5 <= size && size <= 3000 && one[1] == 'b'));
    }
  }
}

TEST_CASE("json schema: a pattern that reads a text in many ways keeps few parses under a length") {
  const auto schema = compiled(
      R"({"type":"string","maxLength":2048,"pattern":"^(https?|s3)://([^/]+)/(.*?([^/]+))$"})");
  REQUIRE(schema);
  GrammarMatcher matcher(std::make_shared<const Grammar>(*schema));
  State state = matcher.start();
  std::string text = "\"s3://grove/";
  for (int i = 0; i < 30; ++i) text += "birch/x";
  std::size_t most_work = 0;
  for (const char c : text) {
    WorkBudget work = WorkBudget::unlimited();
    state = matcher.next(matcher.retain(state).first, static_cast<std::uint8_t>(c), work);
    most_work = std::max(most_work, work.spent);
  }
  CHECK_FALSE(matcher.overflowed());
  CHECK(matcher.may_end(matcher.next(state, '"')));
  CHECK(most_work < 200 * GrammarMatcher::kVisitUnits);
}

TEST_CASE("json schema: a pattern beside a wide length is small") {
  const std::string kSchema =
      R"({"type":"string","minLength":20,"maxLength":512,"pattern":"^arn:[^:]+:[^:]+:[0-9]{12}:.+"})";
  const auto schema = compiled(kSchema);
  REQUIRE(schema);
  CHECK(schema->symbols.size() < 3000);
  const std::string kFront = "\"arn:aws:iam:123456789012:";
  CHECK(accepts(*schema, kFront + "role/x\""));
  CHECK_FALSE(accepts(*schema, "\"arn:aws:iam:12345678901:role/x\""));
  CHECK_FALSE(accepts(*schema, "\"arn:a:i:12345678901"));
  CHECK_FALSE(accepts(*schema, kFront + std::string(512, 'x') + "\""));
}

TEST_CASE("json schema: a length that needs too many rules is refused, or listed as not checked") {
  const std::string kHost =
      R"({"type":"object","required":["host"],"properties":{"host":{"type":"string","maxLength":20,
          "minLength":3,"pattern":"(a|b)*a(a|b){18}"},
          "name":{"type":"string","maxLength":20,"minLength":3,"pattern":"(a|b)*a(a|b){18}"}}})";
  check_bad_request(compiled(kHost),
                    "#/properties/host: 'minLength' and 'maxLength' beside this pattern");
  const auto lenient = compiled(kHost, SchemaMode::Lenient);
  REQUIRE(lenient);
  CHECK(lenient->unchecked.listed == Listed{"#/properties/host: 'minLength' beside 'pattern'",
                                            "#/properties/host: 'maxLength' beside 'pattern'",
                                            "#/properties/name: 'minLength' beside 'pattern'",
                                            "#/properties/name: 'maxLength' beside 'pattern'"});
  const std::string kLong = "bababababababababababababab";
  CHECK(accepts(*lenient, R"({"host":")" + kLong + "\"}"));
  CHECK_FALSE(accepts(*lenient, R"({"host":"bbbb"})"));
}

}  // namespace leasehold::testing
