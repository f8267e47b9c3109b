#include "worker/text/chat/jinja/string_literal.hpp"

#include <fmt/format.h>

#include <charconv>

#include "common/utf8.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

constexpr std::string_view kEscapeLetters = "\\'\"abfnrtv";
constexpr std::string_view kEscapeValues = "\\'\"\a\b\f\n\r\t\v";

struct NumericEscape {
  std::size_t skipped = 0;  ///< Bytes before the digits.
  std::size_t max_digits = 0;
  bool all_digits = true;  ///< Fewer than `max_digits` are an error.
  int base = 16;
};

NumericEscape numeric_escape(char letter) {
  if (letter == 'x') return {.skipped = 1, .max_digits = 2};
  if (letter == 'u') return {.skipped = 1, .max_digits = 4};
  if (letter == 'U') return {.skipped = 1, .max_digits = 8};
  if (letter >= '0' && letter <= '7') return {.max_digits = 3, .all_digits = false, .base = 8};
  return {};
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
  const NumericEscape form = numeric_escape(escape[0]);
  if (form.max_digits == 0) {
    out += '\\';
    return 0;
  }
  const std::string_view digits = escape.substr(form.skipped, form.max_digits);
  std::uint32_t number = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number, form.base);
  const auto used = static_cast<std::size_t>(end.ptr - digits.data());
  if (!is_scalar_value(number) || used == 0 || (form.all_digits && used != form.max_digits)) {
    return fail(Errc::UnsupportedModel, fmt::format("the escape '\\{}' is not a character",
                                                    printable_excerpt(escape.substr(0, 9))));
  }
  append_utf8(out, number);
  return form.skipped + used;
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
