/// Text as Python sees it: a row of characters, in UTF-8 here. Bytes that are no UTF-8 count as
/// characters too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/utf8.hpp"

namespace leasehold::jinja {

/// One view per character, into `text`.
std::vector<std::string_view> characters_of(std::string_view text);

/// What str.isspace() calls space, when `text` begins with it: how many bytes it takes, else 0.
std::size_t space_at(std::string_view text);

/// How many bytes of space `text` begins and ends with.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);

/// Lines as str.splitlines() finds them.
std::vector<std::string_view> lines_of(std::string_view text);

/// Linear time whatever is searched; npos when it is not there.
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
