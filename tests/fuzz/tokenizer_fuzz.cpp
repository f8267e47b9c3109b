// Prompts from tenants, for each kind of tokenizer. Input: one byte that chooses the tokenizer and
// SpecialTokens, then the text.
#include <catch2/catch.hpp>
#include <vector>

#include "common/utf8.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/unit/worker/text/tokenizer/byte_vocabulary.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

struct Kind {
  Tokenizer tokenizer;
  bool round_trips_bytes;  ///< False for SentencePiece, which turns U+2581 into a space.
  bool nfc = false;        ///< The text comes back in NFC.
};

Kind kind_of(const GgufBuilder& builder, bool round_trips_bytes, bool nfc = false) {
  const std::string bytes = builder.bytes();
  const UniqueFd fd =
      fuzz::memory_file({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, 0);
  return {Tokenizer::from_metadata(GgufFile::open(fuzz::path_of(fd)).value()).value(),
          round_trips_bytes, nfc};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> made;
    GgufBuilder sentencepiece;
    add_tokenizer(sentencepiece);
    made.push_back(kind_of(sentencepiece, false));
    for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "tekken", "deepseek-v3", "gpt-4o"}) {
      made.push_back(kind_of(
          byte_vocabulary({{"c", "a"}, {" ", "a"}, {"a", "b"}, {" a", "b"}, {"1", "2"}},
                          {{"<e>", kControl}, {"<u>", kUserDefined}, {"<un>", kUserDefined}}, pre),
          true, std::string_view(pre) == "qwen2"));
    }
    return made;
  }();
  return all;
}

/// Decodes token by token, as a stream does.
std::string streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  StreamDecoder decoder(tokenizer);
  std::string text;
  for (const TokenId token : tokens) {
    const std::string part = decoder.push(token);
    fuzz::check(is_utf8(part));
    text += part;
  }
  return text + decoder.finish();
}

void check_text(const Kind& kind, const std::vector<TokenId>& tokens, std::string_view text) {
  // A mark after a user-defined token composes with it only in the whole text.
  const auto is_same = [&kind](std::string_view one, std::string_view other) {
    return kind.nfc ? to_nfc(one) == to_nfc(other) : one == other;
  };
  std::string pieces;
  for (const TokenId token : tokens) {
    fuzz::check(kind.tokenizer.contains(token));
    pieces += kind.tokenizer.piece(token);
  }
  const std::string seen = streamed(kind.tokenizer, tokens);
  if (!kind.round_trips_bytes) return;
  fuzz::check(is_same(pieces, text));
  fuzz::check(!is_utf8(text) || is_same(seen, text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Kind& kind = kinds()[data[0] / 2 % kinds().size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto special = data[0] % 2 == 0 ? SpecialTokens::AsText : SpecialTokens::AsTokens;
  const auto tokens = kind.tokenizer.encode(text, special);
  fuzz::check(tokens || tokens.error().code == Errc::BadRequest ||
              tokens.error().code == Errc::PromptTooLong);
  if (!tokens) return 0;
  // Control tokens have no text.
  if (special == SpecialTokens::AsText) check_text(kind, *tokens, text);
  (void)streamed(kind.tokenizer, *tokens);
  return 0;
}
