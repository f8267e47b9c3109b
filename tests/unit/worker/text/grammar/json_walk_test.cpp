// Random texts along masks are JSON and valid under the schema, checked by a parser and a validator
// that use no grammar.
#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "tests/unit/worker/text/grammar/schema_validator.hpp"
#include "tests/unit/worker/text/grammar/vocabulary.hpp"
#include "worker/text/grammar/compile.hpp"
#include "worker/text/grammar/grammar_matcher.hpp"

namespace leasehold::testing {
namespace {

using State = GrammarMatcher::State;

/// Draws tokens until the text is complete. After `max_steps` tokens it prefers closing brackets.
class RandomWalk {
 public:
  RandomWalk(const Vocabulary& vocabulary, const PieceTrie& trie, const Grammar& grammar)
      : vocabulary_(vocabulary), trie_(trie), matcher_(std::make_shared<const Grammar>(grammar)) {}

  std::string run(SeededRandom& random, int max_steps) {
    std::string text;
    State state = matcher_.start();
    for (int step = 0; step < 2000; ++step) {
      state = matcher_.retain(state).first;
      const bool enough = matcher_.must_end(state) ||
                          (matcher_.may_end(state) && (step > max_steps || random.below(4) == 0));
      if (enough) return text;
      const std::string& piece = next_piece(state, random, step > max_steps);
      text += piece;
      for (const char c : piece) state = matcher_.next(state, static_cast<std::uint8_t>(c));
      REQUIRE(state != GrammarMatcher::kDead);
    }
    FAIL("the text does not come to an end: " << text);
    return text;
  }

 private:
  const std::string& next_piece(State state, SeededRandom& random, bool finish_quickly) {
    TokenMask mask(trie_.n_vocab());
    trie_.walk(
        state, GrammarMatcher::kDead,
        [this](State from, std::uint8_t byte) { return matcher_.next(from, byte); }, mask);
    REQUIRE_FALSE(matcher_.overflowed());
    std::vector<TokenId> allowed;
    mask.for_each([&](TokenId token) {
      allowed.push_back(token);
      return true;
    });
    REQUIRE_FALSE(allowed.empty());
    // Inside a string brackets do not close; a tilde is allowed only there.
    const std::string_view closers = mask.contains('~') ? "\"" : "}]\"";
    for (const char closing : closers)
      if (finish_quickly && mask.contains(static_cast<unsigned char>(closing)))
        return vocabulary_.pieces[static_cast<unsigned char>(closing)];
    const std::uint64_t which = finish_quickly ? 0 : random.below(allowed.size());
    return vocabulary_.pieces[static_cast<std::size_t>(allowed[which])];
  }

  const Vocabulary& vocabulary_;
  const PieceTrie& trie_;
  GrammarMatcher matcher_;
};

void check_walks(const GrammarSource& source, const nlohmann::ordered_json& schema, int walks) {
  const Vocabulary vocabulary = awkward_vocabulary(1);
  const PieceTrie trie = vocabulary.trie();
  const auto grammar = compile_grammar(source);
  INFO(source.text);
  if (!grammar) FAIL(grammar.error().detail);
  RandomWalk walk(vocabulary, trie, **grammar);
  SeededRandom random(20261120);
  for (int i = 0; i < walks; ++i) {
    const std::string text = walk.run(random, 1 + static_cast<int>(random.below(40)));
    INFO(text);
    const auto parsed = nlohmann::json::parse(text, nullptr, false);
    REQUIRE_FALSE(parsed.is_discarded());
    REQUIRE(why_invalid(schema, schema, parsed).empty());
  }
}

}  // namespace

TEST_CASE("json walks: JSON mode generates JSON objects") {
  check_walks({GrammarKind::JsonObject, ""}, {{"type", "object"}}, 300);
}

TEST_CASE("json walks: a schema generates valid texts only") {
  const char* kSchemas[] = {
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer","minimum":0,"maximum":150},
          "tags":{"type":"array","items":{"enum":["a","b\n","é"]},"maxItems":4},"ok":{"type":["boolean","null"]}},"required":["age","name"]})",
      R"({"type":"object","properties":{"a":{"type":"null"},"ab":{"type":"null"},"é":{"type":"null"}},"additionalProperties":{"type":"integer","minimum":-5,"maximum":5}})",
      R"({"type":"object","required":["a","b"],"additionalProperties":{"type":"boolean"}})",
      R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"number"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}}})",
      R"({"type":"array","prefixItems":[{"type":"string","format":"date"},{"type":"string","format":"uuid"}],"items":{"type":"string","format":"date-time"},"minItems":2,"maxItems":5})",
      R"({"type":"array","items":{"type":"string","pattern":"^[A-Z]{2,3}-\\d{1,4}(x|y[b-f])?$"},"minItems":1,"maxItems":6})",
      R"s({"type":"string","pattern":"^(ab+c|\\\\d)"})s",
      R"({"type":"string","minLength":2,"maxLength":5})",
      R"({"type":"string","format":"time"})",
      R"({"oneOf":[{"type":"integer","exclusiveMinimum":-1000,"maximum":-37},{"const":{"k":[1,"x"]}},{"type":"array","items":{"$ref":"#"},"maxItems":2}]})",
      R"({"allOf":[{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"]},{"type":"object","properties":{"y":{"type":"number"}}}]})",
      "{}"};
  for (const char* schema : kSchemas)
    check_walks({GrammarKind::JsonSchema, schema}, nlohmann::ordered_json::parse(schema), 80);
}

}  // namespace leasehold::testing
