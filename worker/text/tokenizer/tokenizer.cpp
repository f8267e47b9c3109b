#include "worker/text/tokenizer/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/expects.hpp"
#include "common/utf8.hpp"
#include "worker/text/tokenizer/bpe_encoder.hpp"
#include "worker/text/tokenizer/spm_encoder.hpp"

namespace leasehold {
namespace {

/// The common name of an unsupported kind of tokenizer.
std::string_view common_name_suffix(std::string_view model) {
  if (model == "t5") return " (SentencePiece unigram)";
  if (model == "bert") return " (WordPiece)";
  return "";
}

}  // namespace

Result<Tokenizer> Tokenizer::from_metadata(const GgufFile& file) {
  const auto model = TRY(file.get<std::string>("tokenizer.ggml.model"));
  if (model == "llama") return sentencepiece(file);
  if (model == "gpt2" || model == "gemma4") return by_rank(file);
  return fail(Errc::UnsupportedModel,
              fmt::format("{}: the tokenizer is \"{}\"{}; this build reads \"llama\" "
                          "(SentencePiece BPE), \"gpt2\" (byte-level BPE) and \"gemma4\"",
                          file.path(), printable_excerpt(model), common_name_suffix(model)));
}

Result<Tokenizer> Tokenizer::sentencepiece(const GgufFile& file) {
  const auto vocabulary =
      std::make_shared<const Vocabulary>(TRY(Vocabulary::read(file, SpmEncoder::kTraits)));
  return Tokenizer(vocabulary, TRY(SpmEncoder::create(file, vocabulary)));
}

Result<Tokenizer> Tokenizer::by_rank(const GgufFile& file) {
  const PreTokenizerRow& row = *TRY(BpeEncoder::pre_tokenizer_of(file));
  const auto vocabulary =
      std::make_shared<const Vocabulary>(TRY(Vocabulary::read(file, BpeEncoder::traits(row))));
  return Tokenizer(vocabulary, TRY(BpeEncoder::create(file, row, vocabulary)));
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  if (special == SpecialTokens::AsText) return encode_with(vocabulary_->user_defined, text, {});
  const MarkedText::Range whole{0, text.size()};
  return encode_with(vocabulary_->special, text, {&whole, 1});
}

Result<std::vector<TokenId>> Tokenizer::encode(const MarkedText& prompt) const {
  return encode_with(vocabulary_->special, prompt.bytes(), prompt.from_template());
}

Result<std::vector<TokenId>> Tokenizer::encode_with(
    const SpecialTokenFinder& finder, std::string_view text,
    std::span<const MarkedText::Range> from_template) const {
  if (text.size() > kMaxTextBytes)
    return fail(Errc::PromptTooLong, fmt::format("the text has {} bytes; {} can be encoded",
                                                 text.size(), kMaxTextBytes));
  std::vector<TokenId> tokens;
  if (vocabulary_->adds_bos) tokens.push_back(*vocabulary_->bos);
  for (std::size_t at = 0; at < text.size();) {
    const auto found = finder.next(text, at, from_template);
    const std::string_view plain = text.substr(at, (found ? found->start : text.size()) - at);
    if (!plain.empty()) TRY(encoder_->append(plain, tokens));
    if (!found) break;
    tokens.push_back(found->token);
    at = found->start + found->size_bytes;
  }
  // Plain text never becomes BOS, so a second BOS is the template's.
  const bool twice = vocabulary_->adds_bos && tokens.size() > 1 && tokens[1] == *vocabulary_->bos;
  if (twice) tokens.erase(tokens.begin());
  return tokens;
}

std::string_view Tokenizer::piece(TokenId token) const {
  expects(contains(token), "the token is of this vocabulary");
  return vocabulary_->pieces[token];
}

std::string_view Tokenizer::text(TokenId token) const {
  expects(contains(token), "the token is of this vocabulary");
  return vocabulary_->texts[token];
}

bool Tokenizer::is_end_token(TokenId token) const {
  return std::ranges::find(vocabulary_->end_tokens, token) != vocabulary_->end_tokens.end();
}

}  // namespace leasehold
