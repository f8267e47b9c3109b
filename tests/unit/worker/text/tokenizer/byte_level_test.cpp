// Byte-level BPE over vocabularies with known answers.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "common/random.hpp"
#include "tests/unit/worker/text/tokenizer/byte_vocabulary.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"

using namespace leasehold;
using namespace leasehold::testing;
using Catch::Matchers::Contains;

TEST_CASE("byte level: the pair that is listed first merges first, at any position") {
  CHECK(tokens_of(byte_vocabulary({{"b", "c"}, {"a", "b"}}), "abc") == "a|bc");
  CHECK(tokens_of(byte_vocabulary({{"a", "b"}, {"b", "c"}}), "abc") == "ab|c");
  CHECK(tokens_of(byte_vocabulary({{"a", "b"}, {"ab", "c"}, {"b", "c"}}), "abcbc") == "abc|bc");
}

TEST_CASE("byte level: of equal pairs the leftmost merges first") {
  CHECK(tokens_of(byte_vocabulary({{"a", "a"}}), "aaaaa") == "aa|aa|a");
  CHECK(tokens_of(byte_vocabulary({{"a", "a"}, {"aa", "a"}}), "aaaaa") == "aa|aaa");
}

TEST_CASE("byte level: only listed merges produce tokens") {
  // "abc" and its parts are tokens; only one merge to it is listed.
  CHECK(tokens_of(byte_vocabulary({{"b", "c"}, {"ab", "c"}}, {{"ab", kNormal}}), "abc") == "a|bc");
}

TEST_CASE("byte level: merges stay within words") {
  const GgufBuilder builder = byte_vocabulary({{"a", " "}, {" ", "b"}, {"a", "b"}});
  CHECK(tokens_of(builder, "a b ab") == "a| b| |ab");
}

TEST_CASE("byte level: a word that is a token skips its merges if the model says so") {
  const std::vector<NamedToken> whole = {{"xyz", kNormal}};
  CHECK(tokens_of(byte_vocabulary({{"y", "z"}}, whole, "gpt-2"), "xyz") == "x|yz");
  CHECK(tokens_of(byte_vocabulary({{"y", "z"}}, whole, "llama-bpe"), "xyz") == "xyz");
}

TEST_CASE("byte level: bytes that are not UTF-8 become byte tokens") {
  const GgufBuilder builder = byte_vocabulary({{"\xc3", "\xa9"}});
  CHECK(tokens_of(builder, "\xff é\xc3") == "\xff| |é|\xc3");
  CHECK(tokens_of(builder, std::string_view("\0\n", 2)) == std::string("\0|\n", 3));
}

TEST_CASE("byte level: a byte without a token becomes the unknown token or a BadRequest") {
  GgufBuilder builder = byte_vocabulary({});
  builder.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "<unk>"})
      .set("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 1, 2});
  const auto refused = tokenizer_of(builder)->encode("ab!");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::BadRequest);
  CHECK_THAT(refused.error().detail, Contains("0x21"));
  CHECK(tokens_of(builder.set("tokenizer.ggml.unknown_token_id", 2u), "ab!") == "a|b|<unk>");
}

TEST_CASE("byte level: a token outside the alphabet is its own text") {
  const auto tokenizer = tokenizer_of(byte_vocabulary({}).set("tokenizer.ggml.tokens", [] {
    std::vector<std::string> tokens(256, "x");
    tokens[0] = "Ġa";
    tokens[1] = "中";
    return tokens;
  }()));
  CHECK(tokenizer->piece(0) == " a");
  CHECK(tokenizer->piece(1) == "中");
}

TEST_CASE("byte level: a token outside the alphabet does not hide one with the same bytes") {
  GgufBuilder builder = byte_vocabulary({{"\xe4", "\xb8"}, {"\xe4\xb8", "\xad"}});
  CHECK(tokens_of(builder, "中") == "中");
  const auto tokenizer = tokenizer_of(builder.set("tokenizer.ggml.tokens", [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte)
      tokens.push_back(encode_byte_alphabet(std::string(1, static_cast<char>(byte))));
    tokens[1] = "中";  // as written in the vocabulary of Command R
    tokens.push_back(encode_byte_alphabet("\xe4\xb8"));
    tokens.push_back(encode_byte_alphabet("中"));
    return tokens;
  }()));
  CHECK(tokenizer->piece(1) == "中");
  CHECK(tokenizer->encode("中") == std::vector<TokenId>{257});
}

TEST_CASE("byte level: the pre-tokenizer or the file decides whether BOS is added") {
  const std::vector<NamedToken> bos = {{"<s>", kControl}};
  GgufBuilder llama = byte_vocabulary({}, bos, "llama-bpe");
  llama.set("tokenizer.ggml.bos_token_id", 256u);
  CHECK(tokens_of(llama, "a") == "<s>|a");
  CHECK(tokens_of(llama.set("tokenizer.ggml.add_bos_token", false), "a") == "a");
  GgufBuilder gpt = byte_vocabulary({}, bos);
  gpt.set("tokenizer.ggml.bos_token_id", 256u);
  CHECK(tokens_of(gpt, "a") == "a");
  CHECK(tokens_of(gpt.set("tokenizer.ggml.add_bos_token", true), "a") == "<s>|a");
  CHECK(tokens_of(byte_vocabulary({}, {}, "llama-bpe"), "a") == "a");
}

TEST_CASE("byte level: a file without types or pre-tokenizer loads") {
  GgufBuilder builder = byte_vocabulary({{"a", "b"}});
  builder.remove("tokenizer.ggml.token_type").remove("tokenizer.ggml.pre");
  CHECK(tokens_of(builder, "ab+1234") == "ab|+|1|2|3|4");
}

TEST_CASE("byte level: missing or inconsistent metadata is refused") {
  const GgufBuilder good = byte_vocabulary({{"a", "b"}});
  const auto with_merges = [&](std::vector<std::string> lines) {
    return GgufBuilder(good).set("tokenizer.ggml.merges", lines);
  };
  check_refused(GgufBuilder(good).remove("tokenizer.ggml.merges"), Errc::FileCorrupt, "merges");
  check_refused(GgufBuilder(good).remove("tokenizer.ggml.tokens"), Errc::FileCorrupt, "tokens");
  for (const char* line : {"", " ", "a", "a ", " a", "a c", "a b c"})
    check_refused(with_merges({"a b", line}), Errc::FileCorrupt, "merge 1");
  check_refused(GgufBuilder(good).set("tokenizer.ggml.add_bos_token", true), Errc::FileCorrupt,
                "BOS");
}

TEST_CASE("byte level: an unknown pre-tokenizer is refused by name") {
  check_refused(byte_vocabulary({}, {}, "viking"), Errc::UnsupportedModel, "\"viking\"");
  check_refused(byte_vocabulary({}, {}, "viking"), Errc::UnsupportedModel, "qwen2");
}

TEST_CASE("byte level: text is composed to NFC where the model's tokenizer does so") {
  const std::string decomposed = "e\u0301";
  const std::vector<std::pair<std::string, std::string>> merges = {{"\xc3", "\xa9"}};
  CHECK(tokens_of(byte_vocabulary(merges, {}, "qwen2"), decomposed) == "é");
  CHECK(tokens_of(byte_vocabulary(merges, {}, "qwen35"), decomposed) == "é");
  CHECK(tokens_of(byte_vocabulary(merges, {}, "gpt-2"), decomposed) == "e|\xcc|\x81");
  GgufBuilder qwen = byte_vocabulary(merges, {}, "qwen2");
  CHECK(tokens_of(qwen.set("tokenizer.ggml.normalizer.nfc", false), decomposed) == "e|\xcc|\x81");
  GgufBuilder gpt = byte_vocabulary(merges, {}, "gpt-2");
  CHECK(tokens_of(gpt.set("tokenizer.ggml.normalizer.nfc", true), decomposed) == "é");
}

TEST_CASE("byte level: names of special tokens are not normalized") {
  const std::string name = "<e\u0301>";
  const std::vector<NamedToken> special = {{name, kUserDefined}};
  CHECK(tokens_of(byte_vocabulary({}, special, "qwen2"), name) == name);
}

TEST_CASE("byte level: an incomplete character is held back") {
  const auto tokenizer = tokenizer_of(byte_vocabulary({{"\xf0", "\x9f"}}));
  StreamDecoder decoder(*tokenizer);
  CHECK(decoder.push(256).empty());
  CHECK(decoder.push(0xa6).empty());
  CHECK(decoder.push(0x99) == "🦙");
  CHECK(decoder.push(256).empty());
  CHECK(decoder.push('x') == "\uFFFDx");
  CHECK(decoder.push(' ') == " ");
}

TEST_CASE("byte level: any bytes come back, also a million equal ones") {
  std::vector<std::pair<std::string, std::string>> merges;
  for (std::string run = "a"; run.size() < 1024; run += run) merges.emplace_back(run, run);
  for (const char* pair : {"th", "he", " t", "  ", "\n\n", "11", "!!", "\xc3\xa9", "\xe4\xb8"})
    merges.emplace_back(std::string(pair, 1), std::string(pair + 1, 1));
  const auto tokenizer = tokenizer_of(byte_vocabulary(merges));
  SeededRandom random(20261120);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(80); n > 0; --n)
      text +=
          random.below(2) ? static_cast<char>(random.below(256)) : "the é中\n1!"[random.below(12)];
    CHECK(round_trip(*tokenizer, text) == text);
  }
  for (const char byte : {'a', ' ', '\n', '!', '1', '\xff'}) {
    const std::string text(1'000'000, byte);
    CHECK((round_trip(*tokenizer, text) == text));
  }
}

namespace {

/// Tokens of Gemma 4: <bos> and the byte tokens, then `more`.
GgufBuilder gemma4_vocabulary(const std::vector<NamedToken>& more,
                              const std::vector<std::string>& merges) {
  std::vector<std::string> tokens = {"<bos>"};
  std::vector<std::int32_t> types = {kControl};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(fmt::format("<0x{:02X}>", byte));
  types.resize(tokens.size(), kByte);
  for (const NamedToken& token : more) {
    tokens.push_back(token.text);
    types.push_back(token.type);
  }
  return GgufBuilder()
      .set("tokenizer.ggml.model", "gemma4")
      .set("tokenizer.ggml.bos_token_id", 0u)
      .set("tokenizer.ggml.tokens", tokens)
      .set("tokenizer.ggml.token_type", types)
      .set("tokenizer.ggml.merges", merges);
}

const std::vector<NamedToken> kLetters = {{"a", kNormal},   {"b", kNormal},   {"▁", kNormal},
                                          {"▁b", kNormal},  {"a▁b", kNormal}, {"\n", kNormal},
                                          {"\n\n", kNormal}};
const std::vector<std::string> kLetterMerges = {"▁ b", "a ▁b", "\n \n"};

}  // namespace

TEST_CASE("gemma 4: characters merge by rank, also across spaces but not across line ends") {
  const GgufBuilder builder = gemma4_vocabulary(kLetters, kLetterMerges);
  CHECK(tokens_of(builder, "a b") == "<bos>|a b");
  CHECK(tokens_of(builder, "ab b\n\nb") == "<bos>|a|b| b|\n\n|b");
  CHECK(tokens_of(builder, "a▁b") == "<bos>|a b");
  CHECK(tokens_of(builder, "") == "<bos>");
}

TEST_CASE("gemma 4: a character without a token becomes its byte tokens") {
  const GgufBuilder builder = gemma4_vocabulary(kLetters, kLetterMerges);
  CHECK(tokens_of(builder, "aé\xff") == "<bos>|a|\xc3|\xa9|\xff");
  GgufBuilder without_bytes(builder);
  without_bytes.set("tokenizer.ggml.tokens", std::vector<std::string>{"<bos>", "<unk>"})
      .set("tokenizer.ggml.token_type", std::vector<std::int32_t>{kControl, kUnknown})
      .set("tokenizer.ggml.merges", std::vector<std::string>{});
  check_refused(without_bytes, Errc::FileCorrupt, "byte tokens");
  without_bytes.set("tokenizer.ggml.unknown_token_id", 1u);
  CHECK(tokens_of(without_bytes, "é") == "<bos>|<unk>|<unk>");
}

TEST_CASE("gemma 4: BOS is added even if the file says no, and a turn ends the text") {
  GgufBuilder builder = gemma4_vocabulary({{"<turn|>", kUserDefined}}, {});
  CHECK(tokens_of(builder.set("tokenizer.ggml.add_bos_token", false), "") == "<bos>");
  CHECK(tokenizer_of(builder)->is_end_token(257));
  builder.remove("tokenizer.ggml.bos_token_id");
  check_refused(builder, Errc::FileCorrupt, "BOS");
}
