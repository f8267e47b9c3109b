/// Code points and their UTF-8, for readers of grammars, schemas and patterns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold {

/// The character at the front of `text`, which is not empty and whole UTF-8; takes it off.
inline std::uint32_t take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint32_t first = byte(0);
  const std::size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  std::uint32_t c = size == 1 ? first : first & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) c = c << 6 | (byte(i) & 0x3F);
  text.remove_prefix(size);
  return c;
}

/// `c` is a Unicode scalar value.
inline void append_utf8(std::string& text, std::uint32_t c) {
  const auto put = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c >= 0x10000) {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
  } else if (c >= 0x800) {
    put(0xE0 | c >> 12);
  } else {
    put(0xC0 | c >> 6);
  }
  if (c >= 0x800) put(0x80 | (c >> 6 & 0x3F));
  put(0x80 | (c & 0x3F));
}

inline bool is_scalar_value(std::uint32_t c) {
  return c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
}

}  // namespace leasehold
