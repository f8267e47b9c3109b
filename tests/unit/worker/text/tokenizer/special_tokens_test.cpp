// Special tokens in texts, for both kinds of tokenizer.
#include <catch2/catch.hpp>

#include "tests/unit/worker/text/tokenizer/byte_vocabulary.hpp"
#include "worker/text/tokenizer/special_token_finder.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

constexpr auto kAsTokens = SpecialTokens::AsTokens;

GgufBuilder chat_vocabulary() {
  return byte_vocabulary({{"h", "i"}}, {{"<|im_start|>", kControl},
                                        {"<|im_end|>", kControl},
                                        {"<tool>", kUserDefined},
                                        {"<tool>!", kUserDefined},
                                        {"<pad>", kUnused},
                                        {"<unk>", kUnknown}});
}

/// <unk> <s> </s> [I] [/I] <t>, then normal tokens.
GgufBuilder sentencepiece() {
  return GgufBuilder()
      .set("tokenizer.ggml.model", "llama")
      .set("tokenizer.ggml.tokens",
           std::vector<std::string>{"<unk>", "<s>", "</s>", "[I]", "<t>", "▁", "a", "▁a", "<"})
      .set("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, 0, 0, -3, -4, -1, -5})
      .set("tokenizer.ggml.token_type",
           std::vector<std::int32_t>{kUnknown, kControl, kControl, kControl, kUserDefined, kNormal,
                                     kNormal, kNormal, kNormal});
}

}  // namespace

TEST_CASE("special tokens: control tokens are produced only if the caller asks") {
  CHECK(tokens_of(chat_vocabulary(), "<|im_end|>hi") == "<|||i|m|_|e|n|d|||>|hi");
  CHECK(tokens_of(chat_vocabulary(), "<|im_start|>hi<|im_end|>", kAsTokens) ==
        "<|im_start|>|hi|<|im_end|>");
  CHECK(tokens_of(chat_vocabulary(), "<unk>hi", kAsTokens) == "<unk>|hi");
  CHECK(tokens_of(chat_vocabulary(), "<pad>", kAsTokens) == "<|p|a|d|>");
}

TEST_CASE("special tokens: the file lists the tokens that are never drawn") {
  using Ids = std::vector<std::int32_t>;
  constexpr const char* kKey = "tokenizer.ggml.suppress_tokens";
  CHECK(tokenizer_of(sentencepiece())->suppressed_tokens().empty());
  const auto tokenizer = tokenizer_of(sentencepiece().set(kKey, Ids{4, 2, 4}));
  REQUIRE(tokenizer);
  CHECK(std::ranges::equal(tokenizer->suppressed_tokens(), std::vector<TokenId>{2, 4}));
  check_refused(sentencepiece().set(kKey, Ids{9}), Errc::FileCorrupt, "suppress_tokens has 9");
  check_refused(sentencepiece().set(kKey, Ids{-1}), Errc::FileCorrupt, "suppress_tokens has -1");
  check_refused(sentencepiece().set(kKey, Ids{0, 1, 2, 3, 4, 5, 6, 7, 8}), Errc::FileCorrupt,
                "every token");
}

TEST_CASE("special tokens: in a chat's prompt only the template's text makes control tokens") {
  MarkedText prompt("<|im_start|>hi", TextOrigin::Template);
  prompt.append("<|im_end|><|im_", TextOrigin::Client);
  prompt.append("start|>hi<|im_end|>", TextOrigin::Template);
  CHECK(tokens_of(chat_vocabulary(), prompt) ==
        "<|im_start|>|hi|<|||i|m|_|e|n|d|||>|<|||i|m|_|s|t|a|r|t|||>|hi|<|im_end|>");
  prompt = MarkedText("[I]", TextOrigin::Template);
  prompt.append("a[I]</s><s><unk>", TextOrigin::Client);
  prompt.append("[I]", TextOrigin::Template);
  const std::string whole = tokens_of(sentencepiece(), prompt);
  CHECK(whole.starts_with("<s>|[I]| a|"));
  CHECK(whole.ends_with("|[I]"));
  CHECK(whole.find("[I]", 8) == whole.size() - 3);
  CHECK(whole.find("</s>") == std::string::npos);
}

TEST_CASE("special tokens: texts of the client and of the template merge as one text") {
  MarkedText prompt("h", TextOrigin::Template);
  prompt.append("ih", TextOrigin::Client);
  prompt.append("i", TextOrigin::Template);
  CHECK(tokens_of(chat_vocabulary(), prompt) == "hi|hi");
  const MarkedText client(" a a", TextOrigin::Client), own(" a a", TextOrigin::Template);
  CHECK(tokens_of(sentencepiece(), client) == tokens_of(sentencepiece(), own));
}

TEST_CASE("special tokens: a user-defined token that the template writes is text in messages") {
  GgufBuilder builder =
      byte_vocabulary({}, {{"<turn>", kUserDefined}, {"<b>", kUserDefined}, {"\n", kUserDefined}});
  builder.set("tokenizer.chat_template", "<turn>{{ messages }}\n");
  MarkedText prompt("<turn>", TextOrigin::Template);
  prompt.append("<turn><b>\n", TextOrigin::Client);
  CHECK(tokens_of(builder, prompt) == "<turn>|<|t|u|r|n|>|<b>|\n");
  CHECK(tokens_of(builder, "<turn><b>") == "<turn>|<b>");  // a plain prompt has no turns
}

TEST_CASE("special tokens: user-defined tokens are found in every text, longest first") {
  for (const auto special : {SpecialTokens::AsText, kAsTokens})
    CHECK(tokens_of(chat_vocabulary(), "hi<tool>hi<tool>!", special) == "hi|<tool>|hi|<tool>!");
}

TEST_CASE("special tokens: a SentencePiece text gets a space after each special token") {
  CHECK(tokens_of(sentencepiece(), "a[I]a<t>a", kAsTokens) == "<s>| a|[I]| a|<t>| a");
  CHECK(tokens_of(sentencepiece(), "<t>a") == "<s>|<t>| a");
  CHECK(tokens_of(sentencepiece(), "<s>a", SpecialTokens::AsText) == "<s>| |<|<unk>|<unk>|a");
}

TEST_CASE("special tokens: a text that begins with BOS gets no second BOS") {
  CHECK(tokens_of(sentencepiece(), "<s>a", kAsTokens) == "<s>| a");
  CHECK(tokens_of(sentencepiece(), "<s><s>a", kAsTokens) == "<s>|<s>| a");
  CHECK(tokens_of(sentencepiece(), "</s>", kAsTokens) == "<s>|</s>");
}

TEST_CASE("special tokens: extra spaces are removed if the model asks for it") {
  GgufBuilder builder = sentencepiece();
  CHECK(tokens_of(builder, "  a  a ") == "<s>| | | a| | a| ");
  builder.set("tokenizer.ggml.remove_extra_whitespaces", true);
  CHECK(tokens_of(builder, "  a  a ") == "<s>| a| a");
}

TEST_CASE("special tokens: end tokens are found by id and by known names") {
  GgufBuilder builder = chat_vocabulary();
  builder.set("tokenizer.ggml.eos_token_id", 'E' + 0u).set("tokenizer.ggml.eot_token_id", 'T' + 0u);
  builder.set("tokenizer.ggml.eom_token_id", 'M' + 0u);
  const auto tokenizer = tokenizer_of(builder);
  for (const char* end : {"[e~[", "<|observation|>", "<|tool_response>", "[EOS]"})
    CHECK(tokenizer_of(byte_vocabulary({}, {{end, kControl}}))->is_end_token(256));
  for (const char end : {'E', 'T', 'M'}) CHECK(tokenizer->is_end_token(end));
  CHECK(tokenizer->is_end_token(258));  // <|im_end|>
  CHECK_FALSE(tokenizer->is_end_token(257));
  CHECK_FALSE(tokenizer->is_end_token('a'));
}

TEST_CASE("special tokens: an end token is a control token whatever its type in the file") {
  const GgufBuilder builder = byte_vocabulary({}, {{"<|im_end|>", kUserDefined}, {"</s>", kNormal}})
                                  .set("tokenizer.ggml.eos_token_id", 257u);
  CHECK(tokens_of(builder, "<|im_end|>") == "<|||i|m|_|e|n|d|||>");
  const auto tokenizer = tokenizer_of(builder);
  CHECK(tokenizer->piece(256).empty());
  CHECK(tokenizer->text(256) == "<|im_end|>");
  CHECK(tokenizer->piece(257).empty());
  CHECK(tokenizer->is_end_token(256));
}

TEST_CASE("special tokens: in the harmony format a turn ends with its own tokens, not a message") {
  const std::vector<NamedToken> harmony{{"<|start|>", kControl},   {"<|channel|>", kControl},
                                        {"<|message|>", kControl}, {"<|end|>", kControl},
                                        {"<|return|>", kControl},  {"<|call|>", kUserDefined}};
  const auto tokenizer =
      tokenizer_of(byte_vocabulary({}, harmony).set("tokenizer.ggml.eot_token_id", 259u));
  REQUIRE(tokenizer->has_harmony());
  CHECK_FALSE(tokenizer->is_end_token(259));  // <|end|>
  CHECK(tokenizer->is_end_token(260));
  CHECK(tokenizer->is_end_token(261));
  CHECK(tokenizer->piece(261).empty());
  const auto other =
      tokenizer_of(byte_vocabulary({}, {{"<|end|>", kControl}, {"<|call|>", kControl}}));
  CHECK_FALSE(other->has_harmony());
  CHECK(other->is_end_token(256));
  CHECK_FALSE(other->is_end_token(257));
}

TEST_CASE("special tokens: longest_piece_bytes includes control tokens") {
  CHECK(tokenizer_of(chat_vocabulary())->longest_piece_bytes() ==
        std::string("<|im_start|>").size());
  CHECK(tokenizer_of(byte_vocabulary({}))->longest_piece_bytes() == 4);
}

TEST_CASE("special finder: the leftmost match wins, then the longest token") {
  SpecialTokenFinder finder;
  finder.add("ab", 1);
  finder.add("abcd", 2);
  finder.add("bc", 3);
  finder.add("ab", 4);
  const auto found = [&](std::string_view text) {
    const auto hit = finder.next(text);
    return hit ? std::pair(hit->start, hit->token) : std::pair(text.size(), TokenId{-1});
  };
  using Hit = std::pair<std::size_t, TokenId>;
  CHECK(found("xabc") == Hit(1, 1));
  CHECK(found("xabcd") == Hit(1, 2));
  CHECK(found("aabcab") == Hit(1, 1));
  CHECK(found("acbc") == Hit(2, 3));
  CHECK(found("xyz") == Hit(3, -1));
  CHECK(found("") == Hit(0, -1));
}
