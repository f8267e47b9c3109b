#include "common/terminal_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr char kDelete = 0x7F;

/// The sequences E2 80 AA to AE, and E2 81 A6 to A9.
bool begins_with_direction(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xE2') return false;
  const auto last = static_cast<unsigned char>(text[2]);
  if (text[1] == '\x80') return last >= 0xAA && last <= 0xAE;
  return text[1] == '\x81' && last >= 0xA6 && last <= 0xA9;
}

bool may_begin_control(char c) {
  return c == kDelete || c == '\xC2' || c == '\xE2';
}

}  // namespace

std::size_t wide_control_bytes(std::string_view text) {
  if (begins_with_wide_control(text)) return 2;
  return begins_with_direction(text) ? 3 : 0;
}

std::string escape_controls(std::string json) {
  if (std::ranges::none_of(json, may_begin_control)) return json;
  std::string text;
  text.reserve(json.size());
  for (std::size_t i = 0; i < json.size();) {
    const std::string_view rest = std::string_view(json).substr(i);
    const std::size_t size = rest[0] == kDelete ? 1 : wide_control_bytes(rest);
    if (size > 0) text += fmt::format("\\u{:04x}", code_point_of(rest));
    if (size == 0) text += rest[0];
    i += std::max<std::size_t>(size, 1);
  }
  return text;
}

}  // namespace leasehold
