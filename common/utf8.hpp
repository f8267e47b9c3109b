/// UTF-8, one step at a time, over bytes that may be anything.
///
/// Source: The Unicode Standard 15, table 3-7 (well-formed byte sequences) and section 3.9
/// (maximal subparts: what one U+FFFD stands for).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold {

enum class Utf8Kind : std::uint8_t {
  Character,   ///< A whole character.
  Incomplete,  ///< The text ends inside what may still become a character.
  Invalid,     ///< Bytes that no continuation can make a character.
};

struct Utf8Step {
  Utf8Kind kind;
  std::uint8_t size_bytes;  ///< At least 1, at most 4.
};

/// What `text` begins with; `text` is not empty.
Utf8Step next_utf8(std::string_view text);

/// True when all of `text` is whole characters.
bool is_utf8(std::string_view text);

/// Text of a file as a message may show it: its first 64 bytes, "?" for all but visible ASCII.
std::string printable_excerpt(std::string_view text);

}  // namespace leasehold
