#include "common/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

namespace leasehold {
namespace {

constexpr std::size_t kMaxBytes = 4;
constexpr std::uint32_t kCapitalSigma = 0x3A3;
constexpr std::uint32_t kCapitalDottedI = 0x130;

struct Decoded {
  std::uint32_t code_point;
  std::uint8_t size_bytes;  ///< 0: `text` does not begin with a whole character.
};

Decoded decode(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  if (bytes[0] < 0x80) return {bytes[0], 1};
  utf8proc_int32_t code_point = 0;
  const auto limit = static_cast<utf8proc_ssize_t>(std::min(text.size(), kMaxBytes));
  const utf8proc_ssize_t size = utf8proc_iterate(bytes, limit, &code_point);
  if (size <= 0) return {0, 0};
  return {static_cast<std::uint32_t>(code_point), static_cast<std::uint8_t>(size)};
}

/// True if more bytes can make `prefix` a character. Trailing bytes 80 and BF decide: a lead byte
/// that restricts its second byte admits one end of the range 80 to BF.
bool can_be_completed(std::string_view prefix) {
  for (const char trail : {'\x80', '\xbf'}) {
    std::string candidate(prefix);
    while (candidate.size() < kMaxBytes) {
      candidate += trail;
      if (decode(candidate).size_bytes == candidate.size()) return true;
    }
  }
  return false;
}

utf8proc_int32_t signed_code_point(std::uint32_t code_point) {
  return static_cast<utf8proc_int32_t>(code_point);
}

bool is_starter(utf8proc_int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class == 0;
}

/// Appends the full canonical decomposition, without sorting combining marks.
void append_decomposed(std::vector<utf8proc_int32_t>& out, std::uint32_t code_point) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  std::array<utf8proc_int32_t, 16> parts{};
  int boundary_class = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      signed_code_point(code_point), parts.data(), std::ssize(parts), kOptions, &boundary_class);
  out.insert(out.end(), parts.begin(),
             parts.begin() + std::clamp<utf8proc_ssize_t>(count, 0, std::ssize(parts)));
}

/// utf8proc sorts combining marks by exchanging neighbours, which takes quadratic time for a long
/// run of marks. A prompt may consist of marks only.
void sort_marks(std::vector<utf8proc_int32_t>& code_points) {
  for (auto mark = code_points.begin(); mark != code_points.end();) {
    mark = std::find_if_not(mark, code_points.end(), is_starter);
    const auto end = std::find_if(mark, code_points.end(), is_starter);
    std::stable_sort(mark, end, [](utf8proc_int32_t left, utf8proc_int32_t right) {
      return utf8proc_get_property(left)->combining_class <
             utf8proc_get_property(right)->combining_class;
    });
    mark = end;
  }
}

/// `text` is UTF-8.
void append_nfc(std::string& out, std::string_view text) {
  std::vector<utf8proc_int32_t> code_points;
  code_points.reserve(text.size());
  while (!text.empty()) append_decomposed(code_points, take_code_point(text));
  sort_marks(code_points);
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(code_points.data(), std::ssize(code_points), kOptions);
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_utf8(out, static_cast<std::uint32_t>(code_points[static_cast<std::size_t>(i)]));
}

}  // namespace

Utf8Step next_utf8(std::string_view text) {
  if (const Decoded character = decode(text); character.size_bytes > 0)
    return {Utf8Kind::Character, character.size_bytes};
  std::uint8_t size = 0;
  while (size < text.size() && can_be_completed(text.substr(0, size + 1u))) ++size;
  if (size == text.size()) return {Utf8Kind::Incomplete, size};
  return {Utf8Kind::Invalid, std::max<std::uint8_t>(size, 1)};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Decoded character = decode(text);
    if (character.size_bytes == 0) return false;
    text.remove_prefix(character.size_bytes);
  }
  return true;
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(next_utf8(text).size_bytes);
  return count;
}

std::uint32_t code_point_of(std::string_view character) {
  const Decoded decoded = decode(character);
  return decoded.size_bytes > 0 ? decoded.code_point : static_cast<std::uint8_t>(character[0]);
}

std::uint32_t take_code_point(std::string_view& text) {
  const Decoded decoded = decode(text);
  text.remove_prefix(std::max<std::uint8_t>(decoded.size_bytes, 1));
  return decoded.code_point;
}

void append_utf8(std::string& text, std::uint32_t code_point) {
  std::array<utf8proc_uint8_t, kMaxBytes> bytes{};
  const utf8proc_ssize_t size = utf8proc_encode_char(signed_code_point(code_point), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size));
}

std::string to_nfc(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::ranges::all_of(text, is_ascii)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t run = 0;
    std::uint8_t size = 0;
    while (run < text.size() && (size = decode(text.substr(run)).size_bytes) > 0) run += size;
    append_nfc(out, text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    out += text[0];
    text.remove_prefix(1);
  }
  return out;
}

bool is_printable(std::uint32_t code_point) {
  switch (utf8proc_category(signed_code_point(code_point))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return code_point == ' ';
    default:
      return true;
  }
}

std::uint32_t to_upper(std::uint32_t code_point) {
  return static_cast<std::uint32_t>(utf8proc_toupper(signed_code_point(code_point)));
}

std::uint32_t to_lower(std::uint32_t code_point) {
  return static_cast<std::uint32_t>(utf8proc_tolower(signed_code_point(code_point)));
}

std::uint32_t to_title(std::uint32_t code_point) {
  return static_cast<std::uint32_t>(utf8proc_totitle(signed_code_point(code_point)));
}

/// The characters with special casing are those whose case folding has more than one code point.
bool has_special_case(std::uint32_t code_point) {
  if (code_point == kCapitalSigma || code_point == kCapitalDottedI) return true;
  std::array<utf8proc_int32_t, kMaxBytes> folded{};
  int boundary_class = 0;
  return utf8proc_decompose_char(signed_code_point(code_point), folded.data(), std::ssize(folded),
                                 UTF8PROC_CASEFOLD, &boundary_class) > 1;
}

std::string printable_excerpt(std::string_view text) {
  std::string visible(text.substr(0, 64));
  for (char& c : visible)
    if (c < ' ' || c > '~') c = '?';
  return visible;
}

}  // namespace leasehold
