#include "common/cli/terminal_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr char kDelete = 0x7F;

bool may_begin_control(char c) {
  return c == kDelete || c == '\xC2' || c == '\xD8' || c == '\xE2' || c == '\xEF';
}

}  // namespace

std::size_t format_control_bytes(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const std::uint32_t two = byte(0) << 8 | byte(1);
  if ((two >= 0xC280 && two <= 0xC29F) || two == 0xD89C) return 2;  // C1, U+061C
  const std::uint32_t three = two << 8 | byte(2);
  const bool is_mark = three == 0xE2808E || three == 0xE2808F;           // U+200E, U+200F
  const bool is_override = three >= 0xE280A8 && three <= 0xE280AE;       // U+2028 to U+202E
  const bool is_invisible = (three >= 0xE281A0 && three <= 0xE281A4) ||  // U+2060 to U+2064
                            three == 0xEFBBBF;                           // U+FEFF
  const bool is_isolate = three >= 0xE281A6 && three <= 0xE281A9;        // U+2066 to U+2069
  return is_mark || is_override || is_invisible || is_isolate ? 3 : 0;
}

std::string escape_controls(std::string json) {
  if (std::ranges::none_of(json, may_begin_control)) return json;
  std::string text;
  text.reserve(json.size());
  for (std::size_t i = 0; i < json.size();) {
    const std::string_view rest = std::string_view(json).substr(i);
    const std::size_t size = rest[0] == kDelete ? 1 : format_control_bytes(rest);
    if (size > 0) text += fmt::format("\\u{:04x}", code_point_of(rest));
    if (size == 0) text += rest[0];
    i += std::max<std::size_t>(size, 1);
  }
  return text;
}

}  // namespace leasehold
