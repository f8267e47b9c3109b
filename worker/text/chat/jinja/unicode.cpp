#include "worker/text/chat/jinja/unicode.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace leasehold::jinja {
namespace {

using namespace std::string_view_literals;

constexpr std::array kSpacesBeyondAscii = {
    "\xc2\x85"sv,     "\xc2\xa0"sv,     "\xe1\x9a\x80"sv, "\xe2\x80\x80"sv, "\xe2\x80\x81"sv,
    "\xe2\x80\x82"sv, "\xe2\x80\x83"sv, "\xe2\x80\x84"sv, "\xe2\x80\x85"sv, "\xe2\x80\x86"sv,
    "\xe2\x80\x87"sv, "\xe2\x80\x88"sv, "\xe2\x80\x89"sv, "\xe2\x80\x8a"sv, "\xe2\x80\xa8"sv,
    "\xe2\x80\xa9"sv, "\xe2\x80\xaf"sv, "\xe2\x81\x9f"sv, "\xe3\x80\x80"sv};

bool is_ascii_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

/// The size of the line end at the start of `text`, as in str.splitlines(); 0 if there is none.
std::size_t line_end_at(std::string_view text) {
  if (text.starts_with("\r\n")) return 2;
  const char c = text[0];
  if ((c >= '\n' && c <= '\r') || (c >= '\x1c' && c <= '\x1e')) return 1;
  for (const std::string_view end : {"\xc2\x85"sv, "\xe2\x80\xa8"sv, "\xe2\x80\xa9"sv})
    if (text.starts_with(end)) return end.size();
  return 0;
}

}  // namespace

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  while (!text.empty()) {
    const std::size_t size = next_utf8(text).size_bytes;
    characters.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return characters;
}

std::size_t space_at(std::string_view text) {
  if (text.empty()) return 0;
  if (static_cast<unsigned char>(text[0]) < 0x80) return is_ascii_space(text[0]) ? 1 : 0;
  for (const std::string_view space : kSpacesBeyondAscii)
    if (text.starts_with(space)) return space.size();
  return 0;
}

std::size_t leading_space(std::string_view text) {
  std::size_t size = 0;
  while (const std::size_t step = space_at(text.substr(size))) size += step;
  return size;
}

std::size_t trailing_space(std::string_view text) {
  const std::size_t whole = text.size();
  const auto last_space = [&]() -> std::size_t {
    if (text.empty()) return 0;
    if (is_ascii_space(text.back())) return 1;
    for (const std::string_view space : kSpacesBeyondAscii)
      if (text.ends_with(space)) return space.size();
    return 0;
  };
  while (const std::size_t step = last_space()) text.remove_suffix(step);
  return whole - text.size();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t size = line_end_at(text.substr(end));
    if (size == 0) {
      ++end;
      continue;
    }
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + size);
    end = 0;
  }
  if (!text.empty()) lines.push_back(text);
  return lines;
}

std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (wanted.empty()) return from;
  const std::string_view rest = text.substr(from);
  // memmem of glibc is linear; std::string_view::find is quadratic.
  const void* found = ::memmem(rest.data(), rest.size(), wanted.data(), wanted.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace leasehold::jinja
