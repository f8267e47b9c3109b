#include "worker/text/tokenizer/byte_alphabet.hpp"

#include <array>
#include <cstdint>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kLetters = 0x100 + 68;  // 68 bytes are not visible
constexpr std::int16_t kNoByte = -1;

constexpr bool is_visible(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// Maps code points to bytes.
constexpr std::array<std::int16_t, kLetters> kByteOf = [] {
  std::array<std::int16_t, kLetters> byte_of{};
  byte_of.fill(kNoByte);
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 0x100; ++byte)
    byte_of[is_visible(byte) ? byte : next++] = static_cast<std::int16_t>(byte);
  return byte_of;
}();

}  // namespace

std::optional<std::string> decode_byte_alphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    if (next_utf8(text).kind != Utf8Kind::Character) return std::nullopt;
    const std::uint32_t letter = take_code_point(text);
    if (letter >= kLetters || kByteOf[letter] == kNoByte) return std::nullopt;
    bytes += static_cast<char>(kByteOf[letter]);
  }
  return bytes;
}

}  // namespace leasehold
