/// Finds markers in a text that arrives in pieces. Pure.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

namespace leasehold {

constexpr std::string_view kWhitespace = " \t\r\n";
/// Whitespace is held back while a marker may follow it, up to this size.
constexpr std::size_t kMaxHeldBytes = 4 << 10;

struct MarkerSearch {
  /// The bytes before this offset belong neither to a marker nor to the whitespace before one.
  std::size_t settled = 0;
  std::optional<std::size_t> marker;  ///< The index of the first marker in the text.
  std::size_t marker_at = 0;
};

/// The number of bytes at the end of the text that may begin the marker.
inline std::size_t partial_marker_size(std::string_view text, std::string_view marker) {
  std::size_t size = std::min(text.size(), marker.size() - 1);
  while (size > 0 && !text.ends_with(marker.substr(0, size))) --size;
  return size;
}

inline MarkerSearch find_marker(std::string_view text, std::span<const std::string_view> markers) {
  MarkerSearch search;
  search.marker_at = text.size();
  std::size_t begun = 0;
  for (std::size_t i = 0; i < markers.size(); ++i) {
    begun = std::max(begun, partial_marker_size(text, markers[i]));
    const auto at = text.find(markers[i]);
    if (at == std::string_view::npos || at >= search.marker_at) continue;
    search.marker = i;
    search.marker_at = at;
  }
  const std::size_t end = search.marker ? search.marker_at : text.size() - begun;
  const auto last = text.substr(0, end).find_last_not_of(kWhitespace);
  search.settled = last == std::string_view::npos ? 0 : last + 1;
  if (end - search.settled > kMaxHeldBytes) search.settled = end;
  return search;
}

}  // namespace leasehold
