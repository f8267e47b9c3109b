#include "tools/make_model/vocabulary.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "common/utf8.hpp"

namespace leasehold::make_model {
namespace {

// Order of ids: three control tokens, 256 bytes, the space mark and the printable characters, then
// words of one, two and three syllables. Words of one and two syllables exist with and without a
// leading space.
constexpr std::uint32_t kFirstByte = 3;
constexpr std::uint32_t kFirstPiece = kFirstByte + 256;
constexpr std::string_view kSpace = "\u2581";
constexpr std::string_view kConsonants = "bcdfghjklmnprstvwyxz";
constexpr std::string_view kVowels = "aeiou";
constexpr std::uint32_t kSyllables = kConsonants.size() * kVowels.size();
constexpr std::uint32_t kPrintable = '~' - '!' + 1;

void add_syllable(std::string& word, std::uint32_t number) {
  word += kConsonants[number / kVowels.size()];
  word += kVowels[number % kVowels.size()];
}

std::string word_of(std::uint32_t number, int syllables) {
  std::string word;
  for (std::uint32_t left = number; syllables > 0; --syllables, left /= kSyllables) {
    add_syllable(word, left % kSyllables);
  }
  return word;
}

std::string spell_word(std::uint32_t index) {
  std::uint32_t words = kSyllables;
  for (int syllables = 1; syllables <= 2; ++syllables, words *= kSyllables) {
    if (index < words) return std::string(kSpace) + word_of(index, syllables);
    index -= words;
    if (index < words) return word_of(index, syllables);
    index -= words;
  }
  return word_of(index, 3);
}

std::string spell_piece(std::uint32_t index) {
  if (index == 0) return std::string(kSpace);
  if (index <= kPrintable) return std::string(1, static_cast<char>('!' + index - 1));
  return spell_word(index - kPrintable - 1);
}

/// The letter for a byte, as UTF-8: the byte itself if it is visible in Latin-1, else the next
/// unused code point from U+0100.
std::string letter_of(std::uint32_t byte) {
  const auto is_visible = [](std::uint32_t b) {
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b != 0xad && b <= 0xff);
  };
  std::uint32_t letter = byte;
  if (!is_visible(byte)) {
    letter = 0x100;
    for (std::uint32_t before = 0; before < byte; ++before) letter += is_visible(before) ? 0 : 1;
  }
  std::string text;
  append_utf8(text, letter);
  return text;
}

}  // namespace

std::string token_text(std::uint32_t token) {
  static constexpr std::array<std::string_view, kFirstByte> kControl{"<unk>", "<s>", "</s>"};
  if (token < kFirstByte) return std::string(kControl[token]);
  if (token < kFirstPiece) return fmt::format("<0x{:02X}>", token - kFirstByte);
  return spell_piece(token - kFirstPiece);
}

float token_score(std::uint32_t token) {
  return token < kFirstPiece ? 0.0f : -static_cast<float>(token - kFirstPiece);
}

TokenKind token_kind(std::uint32_t token) {
  if (token == kUnknownToken) return TokenKind::Unknown;
  if (token < kFirstByte) return TokenKind::Control;
  return token < kFirstPiece ? TokenKind::Byte : TokenKind::Normal;
}

std::string byte_level_text(std::uint32_t token) {
  if (token < kByteLevelEnd) return letter_of(token);
  if (token == kByteLevelEnd) return "<|endoftext|>";
  std::string word = spell_word(token - kByteLevelEnd - 1);
  if (word.starts_with(kSpace)) word.replace(0, kSpace.size(), letter_of(' '));
  return word;
}

std::vector<std::string> byte_level_merges(std::uint32_t n_tokens) {
  constexpr std::uint32_t kFirstWord = kByteLevelEnd + 1;
  std::vector<std::string> merges;
  for (std::uint32_t token = kFirstWord; token < n_tokens; ++token) {
    // The first words are a space and a syllable. The syllable alone is a later word.
    const bool begins_with_space = token < kFirstWord + kSyllables;
    if (begins_with_space && token + kSyllables >= n_tokens) continue;
    std::string word = byte_level_text(token);
    // Splits off the last syllable, or the vowel of a single syllable.
    word.insert(word.size() == 2 ? 1 : word.size() - 2, " ");
    merges.push_back(std::move(word));
  }
  return merges;
}

}  // namespace leasehold::make_model
