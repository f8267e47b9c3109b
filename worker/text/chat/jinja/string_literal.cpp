#include "worker/text/chat/jinja/string_literal.hpp"

#include <fmt/format.h>

#include <charconv>

#include "common/utf8.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

constexpr std::string_view kEscapeLetters = "\\'\"abfnrtv";
constexpr std::string_view kEscapeValues = "\\'\"\a\b\f\n\r\t\v";

/// The number of hex digits after the letter of an escape; 0 for other escapes.
std::size_t hex_digits_after(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

/// Appends the character of the escape after the backslash; returns the size of the escape.
Result<std::size_t> read_escape(std::string_view escape, std::string& out) {
  if (const auto at = kEscapeLetters.find(escape[0]); at != std::string_view::npos) {
    out += kEscapeValues[at];
    return 1;
  }
  if (escape[0] == '\n') return 1;  // line continuation
  if (escape[0] == 'N') {
    return fail(Errc::UnsupportedModel, "characters by name, \\N{…}, are not supported");
  }
  const std::size_t n_hex = hex_digits_after(escape[0]);
  const bool is_octal = escape[0] >= '0' && escape[0] <= '7';
  if (n_hex == 0 && !is_octal) {
    out += '\\';
    return 0;
  }
  // Fewer than three octal digits are allowed.
  const std::string_view digits = is_octal ? escape.substr(0, 3) : escape.substr(1, n_hex);
  std::uint32_t number = 0;
  const auto end =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, is_octal ? 8 : 16);
  const auto used = static_cast<std::size_t>(end.ptr - digits.data());
  if (!is_scalar_value(number) || used == 0 || (!is_octal && used != n_hex)) {
    return fail(Errc::UnsupportedModel, fmt::format("the escape '\\{}' is not a character",
                                                    printable_excerpt(escape.substr(0, 9))));
  }
  append_utf8(out, number);
  return is_octal ? used : 1 + used;
}

}  // namespace

std::size_t literal_size(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[0]) {
      return i + 1;
    }
  }
  return 0;
}

Result<std::string> unescape_literal(std::string_view between_quotes) {
  std::string out;
  while (!between_quotes.empty()) {
    const char c = between_quotes[0];
    between_quotes.remove_prefix(1);
    if (c != '\\') {
      out += c;
    } else {
      between_quotes.remove_prefix(TRY(read_escape(between_quotes, out)));
    }
  }
  return out;
}

}  // namespace leasehold::jinja
