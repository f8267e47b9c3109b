/// Text as a sequence of characters, as in Python. Bytes that are not UTF-8 count as characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/utf8.hpp"

namespace leasehold::jinja {

/// One view per character, into `text`.
std::vector<std::string_view> characters_of(std::string_view text);

/// The size of the white space character (str.isspace) at the start of `text`; 0 if there is none.
std::size_t space_at(std::string_view text);

/// The size of the leading and trailing white space.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);

/// The lines that str.splitlines() returns.
std::vector<std::string_view> lines_of(std::string_view text);

/// Finds `wanted` in linear time; npos if it does not occur.
std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from = 0);

inline bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
inline bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

}  // namespace leasehold::jinja
