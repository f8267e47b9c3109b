#include "common/utf8.hpp"

namespace leasehold {
namespace {

/// How long a character with this first byte is, and what its second byte may be. Later bytes are
/// 80 … BF always. The narrowed ranges keep out overlong forms, surrogates and U+110000 upwards.
struct Lead {
  std::uint8_t size_bytes;  ///< 0: no character begins like this.
  std::uint8_t second_low;
  std::uint8_t second_high;
};

constexpr Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step next_utf8(std::string_view text) {
  const Lead lead = lead_of(static_cast<std::uint8_t>(text[0]));
  if (lead.size_bytes == 0) return {Utf8Kind::Invalid, 1};
  for (std::uint8_t i = 1; i < lead.size_bytes; ++i) {
    if (i == text.size()) return {Utf8Kind::Incomplete, i};
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const std::uint8_t low = i == 1 ? lead.second_low : 0x80;
    const std::uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Utf8Kind::Invalid, i};
  }
  return {Utf8Kind::Character, lead.size_bytes};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    if (step.kind != Utf8Kind::Character) return false;
    text.remove_prefix(step.size_bytes);
  }
  return true;
}

std::string printable_excerpt(std::string_view text) {
  std::string visible(text.substr(0, 64));
  for (char& c : visible)
    if (c < ' ' || c > '~') c = '?';
  return visible;
}

}  // namespace leasehold
