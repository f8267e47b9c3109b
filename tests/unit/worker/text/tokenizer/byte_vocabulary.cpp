#include "tests/unit/worker/text/tokenizer/byte_vocabulary.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/utf8.hpp"

namespace leasehold::testing {

std::string encode_byte_alphabet(std::string_view bytes) {
  std::string result;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const auto is_visible = [](int b) { return (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad); };
    std::uint32_t letter = byte;
    if (!is_visible(byte)) {
      letter = 0x100;
      for (int b = 0; b < byte; ++b) letter += is_visible(b) ? 0 : 1;
    }
    append_utf8(result, letter);
  }
  return result;
}

GgufBuilder byte_vocabulary(const std::vector<std::pair<std::string, std::string>>& merges,
                            const std::vector<NamedToken>& more, std::string_view pre) {
  std::vector<std::string> tokens, lines;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(encode_byte_alphabet(std::string(1, static_cast<char>(byte))));
  for (const auto& [left, right] : merges) {
    lines.push_back(encode_byte_alphabet(left) + " " + encode_byte_alphabet(right));
    const std::string whole = encode_byte_alphabet(left + right);
    if (std::ranges::find(tokens, whole) == tokens.end()) tokens.push_back(whole);
  }
  std::vector<std::int32_t> types(tokens.size(), kNormal);
  for (const NamedToken& token : more) {
    tokens.push_back(token.type == kNormal ? encode_byte_alphabet(token.text) : token.text);
    types.push_back(token.type);
  }
  return GgufBuilder()
      .set("tokenizer.ggml.model", "gpt2")
      .set("tokenizer.ggml.pre", pre)
      .set("tokenizer.ggml.tokens", tokens)
      .set("tokenizer.ggml.token_type", types)
      .set("tokenizer.ggml.merges", lines);
}

Result<Tokenizer> tokenizer_of(const GgufBuilder& builder) {
  const TemporaryFile file(builder.bytes());
  const auto gguf = GgufFile::open(file.path());
  REQUIRE(gguf.has_value());
  return Tokenizer::from_metadata(*gguf);
}

namespace {

std::string names_of(const Tokenizer& tokenizer, const Result<std::vector<TokenId>>& tokens) {
  REQUIRE(tokens.has_value());
  std::string names;
  for (const TokenId token : *tokens) {
    if (!names.empty()) names += '|';
    names += tokenizer.piece(token).empty() ? tokenizer.text(token) : tokenizer.piece(token);
  }
  return names;
}

}  // namespace

std::string tokens_of(const GgufBuilder& builder, std::string_view text, SpecialTokens special) {
  const auto tokenizer = tokenizer_of(builder);
  REQUIRE(tokenizer.has_value());
  return names_of(*tokenizer, tokenizer->encode(text, special));
}

std::string tokens_of(const GgufBuilder& builder, const MarkedText& prompt) {
  const auto tokenizer = tokenizer_of(builder);
  REQUIRE(tokenizer.has_value());
  return names_of(*tokenizer, tokenizer->encode(prompt));
}

std::string round_trip(const Tokenizer& tokenizer, std::string_view text) {
  std::string back;
  const auto tokens = tokenizer.encode(text);
  REQUIRE(tokens.has_value());
  for (const TokenId token : *tokens) back += tokenizer.piece(token);
  return back;
}

void check_refused(const GgufBuilder& builder, Errc code, const char* expected_detail) {
  INFO(expected_detail);
  const auto tokenizer = tokenizer_of(builder);
  REQUIRE_FALSE(tokenizer.has_value());
  CHECK(name(tokenizer.error().code) == name(code));
  CHECK_THAT(tokenizer.error().detail, Catch::Matchers::Contains(expected_detail));
}

}  // namespace leasehold::testing
