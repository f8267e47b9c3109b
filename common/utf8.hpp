/// UTF-8, code points, case and NFC, all by utf8proc. The input may be any bytes.
///
/// Source: The Unicode Standard 15, table 3-7 (well-formed byte sequences), section 3.9 (maximal
/// subparts: the bytes that one U+FFFD replaces) and annex 15 (NFC).
/// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold {

enum class Utf8Kind : std::uint8_t {
  Character,   ///< A whole character.
  Incomplete,  ///< The text ends inside a sequence that more bytes can complete.
  Invalid,     ///< No continuation makes these bytes a character.
};

struct Utf8Step {
  Utf8Kind kind;
  std::uint8_t size_bytes;  ///< 1 to 4.
};

/// Classifies the first bytes of `text`, which is not empty.
Utf8Step next_utf8(std::string_view text);

/// True if `text` consists of whole characters.
bool is_utf8(std::string_view text);

/// The number of steps that next_utf8 takes through `text`.
std::size_t count_characters(std::string_view text);

/// True for every code point but the surrogates.
constexpr bool is_scalar_value(std::uint32_t code_point) {
  return code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
}

/// The code point of a character as next_utf8 delimits it; for invalid bytes the first byte.
std::uint32_t code_point_of(std::string_view character);

/// Removes the first character of `text` and returns its code point. `text` is not empty and is
/// UTF-8.
std::uint32_t take_code_point(std::string_view& text);

/// Appends the UTF-8 of `code_point`, which is a scalar value.
void append_utf8(std::string& text, std::uint32_t code_point);

/// Normalization Form C of every run of whole characters; other bytes are copied.
/// Cost: O(n log n), whatever the text.
std::string to_nfc(std::string_view text);

/// True for characters that Python's repr() prints unescaped (str.isprintable).
bool is_printable(std::uint32_t code_point);

/// The simple case mappings of the Unicode Character Database: one code point to one code point.
std::uint32_t to_upper(std::uint32_t code_point);
std::uint32_t to_lower(std::uint32_t code_point);
std::uint32_t to_title(std::uint32_t code_point);

/// True if a full case mapping of `code_point` differs from the simple one: "ß" becomes "SS", and
/// the lower case of "Σ" depends on its neighbours.
bool has_special_case(std::uint32_t code_point);

/// At most 64 bytes of `text` for a message; every byte but visible ASCII is shown as "?".
std::string printable_excerpt(std::string_view text);

}  // namespace leasehold
