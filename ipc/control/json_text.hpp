/// Text as JSON writes it, at little cost for the text that needs no escapes. Pure.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::control {

/// True for a character that JSON does not escape and that is one byte of UTF-8.
constexpr bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/// The text in quotes: the bytes that the JSON library writes. Bytes that are not UTF-8 are
/// replaced.
std::string json_string(std::string_view text);

}  // namespace leasehold::control
