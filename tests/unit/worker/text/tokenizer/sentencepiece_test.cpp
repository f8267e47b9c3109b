#include <catch2/catch.hpp>
#include <limits>

#include "tests/unit/worker/text/tokenizer/byte_vocabulary.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

using Tokens = std::vector<TokenId>;

/// <unk> <s> </s>, then these from id 3.
GgufBuilder vocabulary(const std::vector<NamedToken>& entries) {
  std::vector<std::string> texts = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {kUnknown, kControl, kControl};
  std::vector<float> scores = {0.0f, 0.0f, 0.0f};
  for (const NamedToken& entry : entries) {
    texts.push_back(entry.text);
    types.push_back(entry.type);
    scores.push_back(entry.score);
  }
  return GgufBuilder()
      .set("tokenizer.ggml.model", "llama")
      .set("tokenizer.ggml.tokens", texts)
      .set("tokenizer.ggml.scores", scores)
      .set("tokenizer.ggml.token_type", types);
}

Tokens encoded(const GgufBuilder& builder, std::string_view text) {
  const auto tokenizer = tokenizer_of(builder);
  REQUIRE(tokenizer.has_value());
  const auto tokens = tokenizer->encode(text);
  REQUIRE(tokens.has_value());
  return *tokens;
}

}  // namespace

TEST_CASE("sentencepiece: the best score merges first, at any position") {
  CHECK(encoded(tiny_llama(), "ab") == Tokens{kBos, kMarkAb});
  CHECK(encoded(tiny_llama(), "cab") == Tokens{kBos, kMark, kC, kAb});  // not "ca" "b"
  CHECK(encoded(tiny_llama(), "a b") == Tokens{kBos, kMarkA, kMark, kB});
}

TEST_CASE("sentencepiece: of equal scores the leftmost pair merges first") {
  CHECK(encoded(tiny_llama(), "ccc") == Tokens{kBos, kMark, kCc, kC});
}

TEST_CASE("sentencepiece: empty text is the BOS token alone") {
  CHECK(encoded(tiny_llama(), "") == Tokens{kBos});
}

TEST_CASE("sentencepiece: the file decides whether BOS and a leading space are added") {
  GgufBuilder builder = tiny_llama().set("tokenizer.ggml.add_bos_token", false);
  CHECK(encoded(builder, "ab") == Tokens{kMarkAb});
  builder.set("tokenizer.ggml.add_space_prefix", false);
  CHECK(encoded(builder, "ab") == Tokens{kAb});
  CHECK(encoded(builder, "").empty());
}

TEST_CASE("sentencepiece: text without a token becomes byte tokens, also if it is not UTF-8") {
  CHECK(encoded(tiny_llama(), "é") == Tokens{kBos, kMark, byte_token(0xc3), byte_token(0xa9)});
  CHECK(encoded(tiny_llama(),
                "\xff"
                "c\xe2\x96") ==
        Tokens{kBos, kMark, byte_token(0xff), kC, byte_token(0xe2), byte_token(0x96)});
  CHECK(encoded(tiny_llama(), std::string_view("\0", 1)) == Tokens{kBos, kMark, byte_token(0)});
}

TEST_CASE("sentencepiece: without byte tokens, an unknown character is one unknown token") {
  const GgufBuilder builder = vocabulary({{"▁", kNormal}, {"<0xC3>", kByte}});
  CHECK(encoded(builder, "éz") == Tokens{kBos, 3, 0, 0});
}

TEST_CASE("sentencepiece: text with the names of control and byte tokens does not produce them") {
  const GgufBuilder builder = vocabulary({{"▁", kNormal, -9},
                                          {"<", kNormal, -8},
                                          {"s", kNormal, -7},
                                          {">", kNormal, -6},
                                          {"<s", kNormal, -5},
                                          {"<0x41>", kByte},
                                          {"0", kNormal, -9},
                                          {"x", kNormal, -9},
                                          {"4", kNormal, -9},
                                          {"1", kNormal, -9},
                                          {"<0", kNormal, -1},
                                          {"x4", kNormal, -1},
                                          {"1>", kNormal, -1},
                                          {"<0x4", kNormal, -1}});
  CHECK(encoded(builder, "<s>") == Tokens{kBos, 3, 7, 6});
  CHECK(encoded(builder, "<0x41>") == Tokens{kBos, 3, 16, 15});
}

TEST_CASE("sentencepiece: user-defined tokens are found longest first, unused tokens never") {
  const GgufBuilder builder = vocabulary({{"▁", kNormal, -9},
                                          {"a", kNormal, -9},
                                          {"<x>", kUserDefined},
                                          {"<x> a", kUserDefined},
                                          {"aa", kUnused, -1},
                                          {"a<x>", kNormal, -1}});
  CHECK(encoded(builder, "a<x>aa") == Tokens{kBos, 3, 4, 5, 3, 4, 4});
  CHECK(encoded(builder, "<x> aa") == Tokens{kBos, 6, 3, 4});
}

TEST_CASE("sentencepiece: a user-defined run of spaces is found in spaces and in U+2581") {
  const std::vector<NamedToken> entries = {
      {"▁", kNormal}, {"a", kNormal}, {"▁▁", kUserDefined}, {"<x▁y>", kUserDefined}};
  const GgufBuilder builder = vocabulary(entries).set("tokenizer.ggml.add_space_prefix", false);
  for (const char* text : {"a  a", "a▁▁a", "a ▁a", "a▁ a"})
    CHECK(encoded(builder, text) == Tokens{1, 4, 5, 4});
  for (const char* text : {"<x y>", "<x▁y>"}) CHECK(encoded(builder, text) == Tokens{1, 6});
}

TEST_CASE("sentencepiece: a token may contain a space between words") {
  const GgufBuilder builder = vocabulary({{"▁", kNormal, -9},
                                          {"a", kNormal, -9},
                                          {"b", kNormal, -9},
                                          {"▁b", kNormal, -8},
                                          {"a▁b", kNormal, -1}});
  CHECK(encoded(builder, "a b") == Tokens{kBos, 3, 7});
}

TEST_CASE("sentencepiece: a million equal bytes come back") {
  const auto tokenizer = tokenizer_of(tiny_llama());
  for (const char byte : {'a', 'c', ' ', '\xff'}) {
    const std::string text(1'000'000, byte);
    CHECK((round_trip(*tokenizer, text) == " " + text));
  }
}

TEST_CASE("sentencepiece: pieces are the bytes of tokens in text") {
  const auto tokenizer = tokenizer_of(tiny_llama());
  REQUIRE(tokenizer.has_value());
  CHECK(tokenizer->n_vocab() == kTinyVocab);
  CHECK(tokenizer->piece(kMarkAb) == " ab");
  CHECK(tokenizer->piece(byte_token(0xff)) == "\xff");
  CHECK(tokenizer->piece(byte_token(0)) == std::string_view("\0", 1));
  CHECK(tokenizer->piece(0).empty());
  CHECK(tokenizer->piece(kBos).empty());
  CHECK_FALSE(tokenizer->contains(-1));
  CHECK_FALSE(tokenizer->contains(kTinyVocab));
}

TEST_CASE("sentencepiece: end of sequence and end of turn are end tokens; both are optional") {
  const auto both = tokenizer_of(tiny_llama().set("tokenizer.ggml.eot_token_id", 5u));
  CHECK(both->is_end_token(2));
  CHECK(both->is_end_token(5));
  CHECK_FALSE(both->is_end_token(1));
  const auto none = tokenizer_of(tiny_llama().set("tokenizer.ggml.eos_token_id", ~0u));
  CHECK_FALSE(none->is_end_token(2));
}

TEST_CASE("sentencepiece: a moved tokenizer still works") {
  auto first = tokenizer_of(tiny_llama());
  const Tokenizer second = std::move(*first);
  CHECK(second.encode("ab") == Tokens{kBos, kMarkAb});
}

TEST_CASE("sentencepiece: another kind of tokenizer is refused by name") {
  const auto of_model = [](const char* model) {
    return tiny_llama().set("tokenizer.ggml.model", model);
  };
  check_refused(of_model("t5"), Errc::UnsupportedModel, "\"t5\" (SentencePiece unigram)");
  check_refused(of_model("bert"), Errc::UnsupportedModel, "\"bert\" (WordPiece)");
  check_refused(of_model("rwkv"), Errc::UnsupportedModel, "\"rwkv\"; this build reads");
}

TEST_CASE("sentencepiece: missing or inconsistent metadata is refused") {
  const std::string prefix = "tokenizer.ggml.";
  for (const char* key : {"model", "tokens", "scores", "token_type"})
    check_refused(tiny_llama().remove(prefix + key), Errc::FileCorrupt, key);
  check_refused(tiny_llama().set(prefix + "scores", std::vector<float>{1.0f}), Errc::FileCorrupt,
                "1 scores");
  check_refused(tiny_llama().set(prefix + "token_type", std::vector<std::int32_t>{1}),
                Errc::FileCorrupt, "1 types");
  for (const char* id : {"unknown", "bos", "eos", "eot", "eom", "padding"})
    check_refused(tiny_llama().set(prefix + id + "_token_id", kTinyVocab), Errc::FileCorrupt, id);
  check_refused(tiny_llama().set(prefix + "bos_token_id", ~0u).set(prefix + "add_bos_token", true),
                Errc::FileCorrupt, "BOS");
  check_refused(tiny_llama().set(prefix + "unknown_token_id", ~0u), Errc::FileCorrupt, "unknown");
  check_refused(vocabulary({{"a", 7}}), Errc::FileCorrupt, "token 3 has type 7");
  check_refused(vocabulary({{"a", 0}}), Errc::FileCorrupt, "token 3 has type 0");
  check_refused(vocabulary({{"<0xZZ>", kByte}}), Errc::FileCorrupt, "<0xZZ>");
  check_refused(vocabulary({{"a", kNormal, std::numeric_limits<float>::quiet_NaN()}}),
                Errc::FileCorrupt, "token 3");
}
