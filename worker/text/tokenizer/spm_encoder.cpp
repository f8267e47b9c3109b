#include "worker/text/tokenizer/spm_encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/utf8.hpp"
#include "worker/text/tokenizer/space_mark.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kScores = "tokenizer.ggml.scores";

/// Removes leading and trailing spaces and merges runs of spaces.
std::string without_extra_spaces(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c != ' ' || (!result.empty() && result.back() != ' ')) result += c;
  if (result.ends_with(' ')) result.pop_back();
  return result;
}

/// The size of the leading run of space marks.
std::size_t skip_space_marks(std::string_view text) {
  std::size_t end = 0;
  while (text.substr(end).starts_with(kSpaceMark)) end += kSpaceMark.size();
  return end;
}

/// Gemma's runs of spaces are user-defined tokens, but a U+2581 of the text can be part of one.
bool is_run_of_spaces(std::string_view text, TokenKind kind) {
  return kind == TokenKind::UserDefined && skip_space_marks(text) == text.size();
}

std::string sentencepiece_piece(std::string_view text, TokenKind /*kind*/) {
  return with_spaces(text);
}

}  // namespace

const VocabularyTraits SpmEncoder::kTraits = {.piece_of = sentencepiece_piece,
                                              .needs_types = true,
                                              .unknown = 0,
                                              .bos = 1,
                                              .eos = 2,
                                              .adds_bos = true,
                                              .requires_bos = false,
                                              .can_add_space_prefix = true};

Result<std::unique_ptr<SpmEncoder>> SpmEncoder::create(
    const GgufFile& file, std::shared_ptr<const Vocabulary> vocabulary) {
  if (!vocabulary->unknown) return corrupt_vocabulary(file, "the vocabulary has no unknown token");
  std::unique_ptr<SpmEncoder> encoder(new SpmEncoder);
  encoder->vocabulary_ = std::move(vocabulary);
  TRY(encoder->index_tokens(file));
  encoder->removes_extra_spaces_ =
      TRY(file.get_or<bool>("tokenizer.ggml.remove_extra_whitespaces", false));
  return encoder;
}

Result<void> SpmEncoder::index_tokens(const GgufFile& file) {
  const std::vector<std::string>& texts = vocabulary_->texts;
  scores_ = TRY(file.get<std::vector<float>>(kScores));
  if (scores_.size() != texts.size())
    return corrupt_vocabulary(
        file, fmt::format("{} tokens have {} scores", texts.size(), scores_.size()));
  by_text_.reserve(texts.size());
  for (std::size_t token = 0; token < texts.size(); ++token) {
    // NaN would break the order of merges.
    if (std::isnan(scores_[token]))
      return corrupt_vocabulary(file, fmt::format("the score of token {} is not a number", token));
    const auto id = static_cast<TokenId>(token);
    const TokenKind kind = vocabulary_->kinds[token];
    if (kind == TokenKind::Normal || is_run_of_spaces(texts[token], kind)) {
      by_text_[texts[token]] = id;  // of equal texts the later token wins
      const std::size_t next_space = texts[token].find(kSpaceMark, skip_space_marks(texts[token]));
      merges_respect_words_ = merges_respect_words_ && next_space == std::string::npos;
    }
    if (kind == TokenKind::Byte)
      by_byte_[static_cast<std::uint8_t>(vocabulary_->pieces[token][0])] = id;
  }
  return {};
}

std::string SpmEncoder::normalized(std::string_view text) const {
  std::string result(vocabulary_->adds_space_prefix ? kSpaceMark : "");
  result += removes_extra_spaces_ ? replaced(without_extra_spaces(text), " ", kSpaceMark)
                                  : replaced(text, " ", kSpaceMark);
  return result;
}

TokenId SpmEncoder::token_of(std::string_view text) const {
  const auto found = by_text_.find(text);
  return found == by_text_.end() ? SymbolMerger::kNoToken : found->second;
}

/// If no merge can cross a word boundary, words are merged one by one, which gives the same result
/// with a smaller heap.
std::string_view SpmEncoder::next_word(std::string_view text) const {
  if (!merges_respect_words_) return text;
  return text.substr(0, text.find(kSpaceMark, skip_space_marks(text)));
}

Result<void> SpmEncoder::append(std::string_view text, std::vector<TokenId>& tokens) const {
  const std::string whole = normalized(text);
  SymbolMerger symbols;
  for (std::string_view rest = whole; !rest.empty();) {
    const std::string_view word = next_word(rest);
    append_word(word, symbols, tokens);
    rest.remove_prefix(word.size());
  }
  return {};
}

void SpmEncoder::append_word(std::string_view word, SymbolMerger& symbols,
                             std::vector<TokenId>& tokens) const {
  symbols.clear();
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view first = rest.substr(0, next_utf8(rest).size_bytes);
    symbols.add(static_cast<std::uint32_t>(first.size()), token_of(first));
    rest.remove_prefix(first.size());
  }
  using Symbol = SymbolMerger::Symbol;
  symbols.merge([&](const Symbol& a, const Symbol& b) -> std::optional<SymbolMerger::Merge> {
    const TokenId token = token_of(word.substr(a.start, a.size_bytes + b.size_bytes));
    if (token == SymbolMerger::kNoToken) return std::nullopt;
    return SymbolMerger::Merge{scores_[token], token};
  });
  symbols.for_each([&](const Symbol& symbol) {
    if (symbol.token != SymbolMerger::kNoToken) return tokens.push_back(symbol.token);
    append_bytes(word.substr(symbol.start, symbol.size_bytes), tokens);
  });
}

void SpmEncoder::append_bytes(std::string_view text, std::vector<TokenId>& tokens) const {
  const auto token_of_byte = [&](char c) { return by_byte_[static_cast<std::uint8_t>(c)]; };
  const auto has_token = [&](char c) { return token_of_byte(c).has_value(); };
  if (!std::ranges::all_of(text, has_token)) return tokens.push_back(*vocabulary_->unknown);
  for (const char c : text) tokens.push_back(*token_of_byte(c));
}

}  // namespace leasehold
