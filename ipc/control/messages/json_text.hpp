/// Writes text as a JSON string; copies it if it needs no escapes. Pure.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::control {

/// True for a printable ASCII character that JSON does not escape.
constexpr bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/// Returns the text in quotes, byte for byte as the JSON library writes it. Bytes that are not
/// UTF-8 are replaced.
std::string json_string(std::string_view text);

}  // namespace leasehold::control
