#include "worker/text/tokenizer/bpe_encoder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/utf8.hpp"
#include "worker/text/tokenizer/space_mark.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kNfc = "tokenizer.ggml.normalizer.nfc";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kGemma4 = "gemma4";
constexpr std::size_t kMaxMerges = std::size_t{1}
                                   << 24;  // a float represents ranks exactly up to 2^24
constexpr TokenId kNoToken = SymbolMerger::kNoToken;

constexpr std::uint64_t pair_of(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

constexpr std::uint32_t kLetters = 0x100 + 68;  // 68 bytes are not visible
constexpr std::int16_t kNoByte = -1;

constexpr bool is_visible(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// Byte-level vocabularies write bytes as visible characters; this maps their code points to bytes.
/// A byte that is visible in Latin-1 keeps its code point, and the others get U+0100 and up, in
/// order: a space is "Ġ", a line feed "Ċ".
constexpr std::array<std::int16_t, kLetters> kByteOf = [] {
  std::array<std::int16_t, kLetters> byte_of{};
  byte_of.fill(kNoByte);
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 0x100; ++byte)
    byte_of[is_visible(byte) ? byte : next++] = static_cast<std::int16_t>(byte);
  return byte_of;
}();

/// Returns the bytes of `text`, or nothing if a character is not in the alphabet.
std::optional<std::string> decode_byte_alphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    if (next_utf8(text).kind != Utf8Kind::Character) return std::nullopt;
    const std::uint32_t letter = take_code_point(text);
    if (letter >= kLetters || kByteOf[letter] == kNoByte) return std::nullopt;
    bytes += static_cast<char>(kByteOf[letter]);
  }
  return bytes;
}

/// The bytes of a token. A token outside the byte alphabet is its own text, as in other readers.
std::string byte_level_piece(std::string_view text, TokenKind kind) {
  const auto bytes = kind == TokenKind::Normal ? decode_byte_alphabet(text) : std::nullopt;
  return bytes.value_or(std::string(text));
}

std::string character_piece(std::string_view text, TokenKind /*kind*/) {
  return with_spaces(text);
}

}  // namespace

Result<const PreTokenizerRow*> BpeEncoder::pre_tokenizer_of(const GgufFile& file) {
  // Files of Gemma 4 name the pre-tokenizer as their model.
  const auto model = TRY(file.get_or<std::string>(kModel, ""));
  const auto name =
      model == kGemma4 ? std::string(kGemma4) : TRY(file.get_or<std::string>(kPre, "default"));
  const PreTokenizerRow* row = find_pre_tokenizer(name);
  if (row == nullptr)
    return fail(Errc::UnsupportedModel,
                fmt::format("{}: {} is \"{}\"; this build knows {}", file.path(), kPre,
                            printable_excerpt(name), known_pre_tokenizers()));
  return row;
}

VocabularyTraits BpeEncoder::traits(const PreTokenizerRow& row) {
  const bool has_characters = row.unit == BpeUnit::Character;
  return {.piece_of = has_characters ? character_piece : byte_level_piece,
          .needs_types = has_characters,
          .unknown = kNoTokenId,
          .bos = kNoTokenId,
          .eos = kNoTokenId,
          .adds_bos = row.adds_bos,
          .requires_bos = row.requires_bos,
          .can_add_space_prefix = false};
}

Result<std::unique_ptr<BpeEncoder>> BpeEncoder::create(
    const GgufFile& file, const PreTokenizerRow& row,
    std::shared_ptr<const Vocabulary> vocabulary) {
  auto pre_tokenizer = TRY(PreTokenizer::create(std::string(row.name), row.expressions));
  std::unique_ptr<BpeEncoder> encoder(new BpeEncoder(std::move(pre_tokenizer)));
  encoder->vocabulary_ = std::move(vocabulary);
  encoder->unit_ = row.unit;
  encoder->ignores_merges_ = row.ignores_merges;
  encoder->normalizes_nfc_ = TRY(file.get_or<bool>(kNfc, row.normalizes_nfc));
  encoder->index_tokens();
  const bool has_all_bytes =
      std::ranges::find(encoder->by_byte_, kNoToken) == encoder->by_byte_.end();
  if (row.unit == BpeUnit::Character && !has_all_bytes && !encoder->vocabulary_->unknown)
    return corrupt_vocabulary(file, "the vocabulary lacks byte tokens and has no unknown token");
  TRY(encoder->read_merges(file));
  return encoder;
}

/// Leaves out tokens outside the byte alphabet. Such a token never results from bytes, but may have
/// the same piece as one that does.
void BpeEncoder::index_tokens() {
  const bool is_by_byte = unit_ == BpeUnit::Byte;
  by_byte_.fill(kNoToken);
  by_bytes_.reserve(vocabulary_->size());
  for (TokenId token = 0; token < static_cast<TokenId>(vocabulary_->size()); ++token) {
    const std::string& piece = vocabulary_->pieces[token];
    const TokenKind kind = vocabulary_->kinds[token];
    const bool is_text =
        kind == TokenKind::Normal &&
        (!is_by_byte || decode_byte_alphabet(vocabulary_->texts[token]).has_value());
    if (is_text) by_bytes_.emplace(piece, token);
    const bool stands_for_byte = kind == TokenKind::Byte || (is_text && is_by_byte);
    if (!stands_for_byte || piece.size() != 1) continue;
    TokenId& of_byte = by_byte_[static_cast<std::uint8_t>(piece[0])];
    if (of_byte == kNoToken) of_byte = token;
  }
}

/// The token with this text in the file.
std::optional<TokenId> BpeEncoder::find_token(std::string_view text) const {
  const auto piece_of = unit_ == BpeUnit::Byte ? byte_level_piece : character_piece;
  const auto found = by_bytes_.find(piece_of(text, TokenKind::Normal));
  if (found == by_bytes_.end()) return std::nullopt;
  return found->second;
}

Result<void> BpeEncoder::read_merges(const GgufFile& file) {
  const auto lines = TRY(file.get<std::vector<std::string>>(kMerges));
  if (lines.size() > kMaxMerges)
    return corrupt_vocabulary(
        file, fmt::format("{} has {} entries; {} are allowed", kMerges, lines.size(), kMaxMerges));
  merges_.reserve(lines.size());
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    const std::string_view line = lines[rank];
    const std::size_t space = std::min(line.find(' ', 1), line.size());
    const std::string_view second = line.substr(std::min(space + 1, line.size()));
    const auto left = find_token(line.substr(0, space));
    const auto right = find_token(second);
    const auto whole = find_token(std::string(line.substr(0, space)).append(second));
    if (!left || !right || !whole)
      return corrupt_vocabulary(file, fmt::format("merge {} is \"{}\", which joins no two tokens "
                                                  "to a third",
                                                  rank, printable_excerpt(line)));
    merges_.emplace(pair_of(*left, *right), Merge{-static_cast<float>(rank), *whole});
  }
  return {};
}

Result<void> BpeEncoder::append(std::string_view text, std::vector<TokenId>& tokens) const {
  std::string normalized;
  if (normalizes_nfc_) text = normalized = to_nfc(text);
  if (unit_ == BpeUnit::Character) text = normalized = with_spaces(text);
  const auto has_token = [this](char c) {
    return by_byte_[static_cast<std::uint8_t>(c)] != kNoToken;
  };
  const auto unmapped = std::ranges::find_if_not(text, has_token);
  if (unit_ == BpeUnit::Byte && unmapped != text.end() && !vocabulary_->unknown)
    return fail(Errc::BadRequest, fmt::format("the model has no token for the byte 0x{:02x}",
                                              static_cast<std::uint8_t>(*unmapped)));
  SymbolMerger symbols;
  return pre_tokenizer_.for_each_word(
      text, [&](std::string_view word) { append_word(word, symbols, tokens); });
}

void BpeEncoder::append_word(std::string_view word, SymbolMerger& symbols,
                             std::vector<TokenId>& tokens) const {
  if (ignores_merges_) {
    const auto whole = by_bytes_.find(word);
    if (whole != by_bytes_.end()) return tokens.push_back(whole->second);
  }
  symbols.clear();
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view first = rest.substr(0, unit_size(rest));
    symbols.add(static_cast<std::uint32_t>(first.size()), unit_token(first));
    rest.remove_prefix(first.size());
  }
  using Symbol = SymbolMerger::Symbol;
  symbols.merge([this](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
    const auto found = merges_.find(pair_of(left.token, right.token));
    if (found == merges_.end()) return std::nullopt;
    return found->second;
  });
  symbols.for_each([&](const Symbol& symbol) {
    if (symbol.token != kNoToken) return tokens.push_back(symbol.token);
    for (const char c : word.substr(symbol.start, symbol.size_bytes)) {
      const TokenId of_byte = by_byte_[static_cast<std::uint8_t>(c)];
      tokens.push_back(of_byte != kNoToken ? of_byte : *vocabulary_->unknown);
    }
  });
}

std::size_t BpeEncoder::unit_size(std::string_view text) const {
  return unit_ == BpeUnit::Byte ? 1 : next_utf8(text).size_bytes;
}

TokenId BpeEncoder::unit_token(std::string_view unit) const {
  if (unit_ == BpeUnit::Byte) return by_byte_[static_cast<std::uint8_t>(unit.front())];
  const auto found = by_bytes_.find(unit);
  return found == by_bytes_.end() ? kNoToken : found->second;
}

}  // namespace leasehold
