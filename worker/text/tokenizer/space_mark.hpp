/// The mark that vocabularies of SentencePiece write for a space. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace leasehold {

inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

inline std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(from, at), text.size());
    result += text.substr(at, found - at);
    if (found < text.size()) result += to;
    at = found + from.size();
  }
  return result;
}

/// The bytes of a token that the file writes with marks.
inline std::string with_spaces(std::string_view text) {
  return replaced(text, kSpaceMark, " ");
}

}  // namespace leasehold
