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

const std::string& next_piece(const Vocabulary& vocabulary, const TokenMask& mask,
                              SeededRandom& random, bool finish_quickly) {
  const std::vector<TokenId> allowed = tokens_of(mask);
  REQUIRE_FALSE(allowed.empty());
  // Inside a string brackets do not close; a tilde is allowed only there.
  const std::string_view closers = mask.contains('~') ? "\"" : "}]\"";
  for (const char closing : closers)
    if (finish_quickly && mask.contains(static_cast<unsigned char>(closing)))
      return vocabulary.pieces[static_cast<unsigned char>(closing)];
  const std::uint64_t which = finish_quickly ? 0 : random.below(allowed.size());
  return vocabulary.pieces[static_cast<std::size_t>(allowed[which])];
}

/// Draws tokens until the text is complete. After `max_steps` tokens it prefers closing brackets.
std::string random_text(const Vocabulary& vocabulary, const PieceTrie& trie,
                        GrammarMatcher& matcher, SeededRandom& random, int max_steps) {
  std::string text;
  State state = matcher.start();
  for (int step = 0; step < 2000; ++step) {
    state = matcher.retain(state).first;
    const bool enough = matcher.must_end(state) ||
                        (matcher.may_end(state) && (step > max_steps || random.below(4) == 0));
    if (enough) return text;
    const std::string& piece =
        next_piece(vocabulary, trie_mask(trie, matcher, state), random, step > max_steps);
    text += piece;
    for (const char c : piece) state = matcher.next(state, static_cast<std::uint8_t>(c));
    REQUIRE(state != GrammarMatcher::kDead);
  }
  FAIL("the text does not come to an end: " << text);
  return text;
}

void check_walks(const GrammarSource& source, const nlohmann::ordered_json& schema, int walks) {
  const Vocabulary vocabulary = awkward_vocabulary(1);
  const PieceTrie trie = vocabulary.trie();
  const auto grammar = compile_grammar(source);
  INFO(source.text);
  if (!grammar) FAIL(grammar.error().detail);
  GrammarMatcher matcher(*grammar);
  SeededRandom random(20261120);
  for (int i = 0; i < walks; ++i) {
    const std::string text =
        random_text(vocabulary, trie, matcher, random, 1 + static_cast<int>(random.below(40)));
    INFO(text);
    const auto parsed = nlohmann::json::parse(text, nullptr, false);
    REQUIRE_FALSE(parsed.is_discarded());
    REQUIRE(why_invalid(schema, schema, parsed).empty());
  }
}

}  // namespace

TEST_CASE("json walks: random texts are hardly made of blanks") {
  const Vocabulary vocabulary = awkward_vocabulary(1);
  const PieceTrie trie = vocabulary.trie();
  for (const GrammarSource& source :
       {GrammarSource{GrammarKind::JsonObject, ""},
        GrammarSource{GrammarKind::JsonSchema,
                      R"({"items":{"properties":{"a":{"type":"boolean"},"b":{"items":{"type":
                      "null"}}},"required":["a","b"]},"type":"array","minItems":3})"}}) {
    GrammarMatcher matcher(compile_grammar(source).value());
    SeededRandom random(20261128);
    std::size_t n_blanks = 0, n_bytes = 0;
    for (int i = 0; i < 300; ++i) {
      const std::string text = random_text(vocabulary, trie, matcher, random, 200);
      const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
      n_blanks += static_cast<std::size_t>(std::ranges::count_if(text, is_blank));
      n_bytes += text.size();
    }
    INFO(source.text << ": " << n_blanks << " of " << n_bytes);
    CHECK(n_blanks * 100 < n_bytes * 15);
  }
}

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
