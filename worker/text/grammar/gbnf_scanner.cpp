#include "worker/text/grammar/gbnf_scanner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

}  // namespace

Result<void> check_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = next_utf8(text.substr(at));
    if (step.kind != Utf8Kind::Character) {
      return fail(Errc::BadRequest, fmt::format("the grammar is not UTF-8 at byte {}", at));
    }
    at += step.size_bytes;
  }
  return {};
}

bool GbnfScanner::take(std::string_view what) {
  if (!starts_with(what)) return false;
  at_ += what.size();
  return true;
}

std::string_view GbnfScanner::take_name() {
  const std::size_t begin = at_;
  while (!at_end() && is_name_character(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

Result<std::uint32_t> GbnfScanner::take_character() {
  if (take("\\")) return take_escape();
  std::string_view text = rest();
  const std::uint32_t c = take_code_point(text);
  at_ = text_.size() - text.size();
  return c;
}

Result<std::uint32_t> GbnfScanner::take_escape() {
  constexpr std::string_view kLetters = "nrt\\\"[]-";
  constexpr std::string_view kValues = "\n\r\t\\\"[]-";
  constexpr std::string_view kHexLetters = "xuU";  // 2, 4 and 8 digits
  const std::size_t begin = at_ - 1;
  if (at_end()) return error_at(begin, "unknown escape");
  const char letter = text_[at_++];
  if (const auto at = kLetters.find(letter); at != std::string_view::npos)
    return static_cast<std::uint32_t>(kValues[at]);
  const std::size_t width = kHexLetters.find(letter);
  if (width == std::string_view::npos) return error_at(begin, "unknown escape");
  const std::size_t n_digits = std::size_t{2} << width;
  std::uint32_t value = 0;
  const std::string_view digits = rest().substr(0, n_digits);
  const auto [end, failed] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (failed != std::errc{} || end != digits.data() + n_digits || !is_scalar_value(value)) {
    return error_at(
        begin, fmt::format("expected {} hex digits of a character after '\\{}'", n_digits, letter));
  }
  at_ += n_digits;
  return value;
}

Result<std::uint32_t> GbnfScanner::take_number() {
  std::uint32_t value = 0;
  const char* begin = text_.data() + at_;
  const auto [end, failed] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (failed != std::errc{} || value > kMaxRepetitions)
    return error(fmt::format("expected a number from 0 to {}", kMaxRepetitions));
  at_ += static_cast<std::size_t>(end - begin);
  return value;
}

Result<Repetition> GbnfScanner::take_repetition() {
  const std::size_t begin = at_ - 1;
  skip_blanks();
  Repetition times{.min = TRY(take_number()), .max = std::nullopt};
  skip_blanks();
  const bool is_range = take(",");
  skip_blanks();
  if (!is_range) times.max = times.min;
  if (is_range && !starts_with('}')) times.max = TRY(take_number());
  skip_blanks();
  if (!take("}")) return error("expected '}'");
  if (times.max && *times.max < times.min)
    return error_at(begin, "the repetition ends before it begins");
  return times;
}

void GbnfScanner::skip_blanks() {
  while (starts_with(' ') || starts_with('\t')) ++at_;
}

void GbnfScanner::skip(bool newlines) {
  while (true) {
    skip_blanks();
    if (starts_with('#')) {
      while (!at_end() && !at_newline()) ++at_;
    } else if (newlines && at_newline()) {
      at_ += starts_with('\r') ? 2 : 1;
    } else {
      return;
    }
  }
}

std::unexpected<Error> GbnfScanner::error_at(std::size_t position, const std::string& what) const {
  const std::string_view before = text_.substr(0, position);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::string_view in_line = before.substr(before.rfind('\n') + 1);
  return fail(Errc::BadRequest, fmt::format("grammar, line {} column {}: {}", line,
                                            count_characters(in_line) + 1, what));
}

}  // namespace leasehold
