#include "worker/text/chat/jinja/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/utf8.hpp"
#include "worker/text/chat/jinja/limits.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool begins_name(char c) {
  return is_ascii_letter(c) || c == '_';
}

std::string normalize_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool pair = source.substr(i, 2) == "\r\n";
    if (!pair) text += source[i] == '\r' ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

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

/// The size of the literal at the start of `text`, with its quotes; 0 without a closing quote.
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

/// Resolves the escapes between the quotes. Escapes that Python does not define are kept.
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

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)) {}

  Result<std::vector<Token>> run() {
    while (!rest().empty()) TRY(data_and_tag());
    add(TokenKind::End, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(position_); }

  void skip(std::size_t bytes) {
    const std::string_view skipped = rest().substr(0, bytes);
    line_ += static_cast<int>(std::ranges::count(skipped, '\n'));
    if (!skipped.empty()) at_line_start_ = skipped.back() == '\n';
    position_ += skipped.size();
  }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::Data, std::string(text));
  }

  /// The position of the next "{%", "{{" or "{#", or the end.
  std::size_t next_tag() const {
    for (std::size_t at = rest().find('{'); at != std::string_view::npos;
         at = rest().find('{', at + 1)) {
      const char kind = at + 1 < rest().size() ? rest()[at + 1] : '\0';
      if (kind == '%' || kind == '{' || kind == '#') return at;
    }
    return rest().size();
  }

  /// The text before a tag after whitespace control: a '-' removes all trailing space; for blocks
  /// and comments, lstrip_blocks removes spaces between the start of the line and the tag.
  std::string_view before_tag(std::string_view text, char sign, bool is_print) const {
    if (sign == '-') return text.substr(0, text.size() - trailing_space(text));
    if (sign == '+' || is_print) return text;
    const std::size_t line_start = text.rfind('\n') + 1;  // npos + 1 is 0
    if (line_start == 0 && !at_line_start_) return text;
    const std::string_view tail = text.substr(line_start);
    return leading_space(tail) == tail.size() ? text.substr(0, line_start) : text;
  }

  Result<void> data_and_tag() {
    const std::size_t size = next_tag();
    const std::string_view text = rest().substr(0, size);
    if (size == rest().size()) {
      add_data(text);
      skip(size);
      return {};
    }
    const char kind = rest()[size + 1];
    const char after = size + 2 < rest().size() ? rest()[size + 2] : '\0';
    const bool is_signed = after == '-' || after == '+';
    add_data(before_tag(text, is_signed ? after : '\0', kind == '{'));
    skip(size + 2 + (is_signed ? 1 : 0));
    if (kind == '#') return comment();
    if (kind == '{') return expression(TokenKind::PrintBegin, TokenKind::PrintEnd);
    if (const std::size_t raw = raw_tag_size()) {
      skip(raw);
      return raw_text();
    }
    return expression(TokenKind::BlockBegin, TokenKind::BlockEnd);
  }

  Result<void> comment() {
    const std::size_t end = rest().find("#}");
    if (end == std::string_view::npos) return syntax_error(line_, "a comment has no '#}'");
    const char sign = end > 0 ? rest()[end - 1] : '\0';
    skip(end);
    end_tag(2, sign);
    return {};
  }

  /// Skips the end of a block or comment, and the space that its sign or trim_blocks removes.
  void end_tag(std::size_t bytes, char sign) {
    skip(bytes);
    if (sign == '-') skip(leading_space(rest()));
    if (sign != '-' && sign != '+' && rest().starts_with('\n')) skip(1);
  }

  /// The size of "raw %}" if it comes next, else 0.
  std::size_t raw_tag_size() const {
    std::string_view text = rest();
    text.remove_prefix(leading_space(text));
    if (!text.starts_with("raw")) return 0;
    text.remove_prefix(3);
    text.remove_prefix(leading_space(text));
    if (text.starts_with("%}")) return rest().size() - text.size() + 2;
    if (!text.starts_with("-%}")) return 0;
    return rest().size() - text.size() + 3 + leading_space(text.substr(3));
  }

  Result<void> raw_text() {
    for (std::size_t at = rest().find("{%"); at != std::string_view::npos;
         at = rest().find("{%", at + 1)) {
      std::string_view tag = rest().substr(at + 2);
      const char sign = tag.empty() ? '\0' : tag[0];
      if (sign == '-' || sign == '+') tag.remove_prefix(1);
      tag.remove_prefix(leading_space(tag));
      if (!tag.starts_with("endraw")) continue;
      tag.remove_prefix(6);
      tag.remove_prefix(leading_space(tag));
      const char end_sign = tag.empty() ? '\0' : tag[0];
      if (end_sign == '-' || end_sign == '+') tag.remove_prefix(1);
      if (!tag.starts_with("%}")) continue;
      add_data(before_tag(rest().substr(0, at), sign, false));
      skip(rest().size() - tag.size());
      end_tag(2, end_sign);
      return {};
    }
    return syntax_error(line_, "'raw' without 'endraw'");
  }

  Result<void> expression(TokenKind begin, TokenKind end) {
    add(begin, "");
    const std::string_view close = end == TokenKind::PrintEnd ? "}}" : "%}";
    const int first_line = line_;
    brackets_.clear();
    while (true) {
      skip(leading_space(rest()));
      if (rest().empty()) return syntax_error(first_line, fmt::format("'{}' is missing", close));
      if (brackets_.empty() && ends_here(close, end)) return {};
      TRY(token());
    }
  }

  bool ends_here(std::string_view close, TokenKind end) {
    const char first = rest()[0];
    const bool is_signed = first == '-' || (first == '+' && end == TokenKind::BlockEnd);
    if (!rest().substr(is_signed ? 1 : 0).starts_with(close)) return false;
    add(end, "");
    if (is_signed) skip(1);
    if (end == TokenKind::BlockEnd || is_signed) {
      end_tag(close.size(), is_signed ? first : '\0');
    } else {
      skip(close.size());
    }
    return true;
  }

  Result<void> token() {
    const char first = rest()[0];
    if (is_ascii_digit(first)) return number();
    if (begins_name(first)) return take(TokenKind::Name, name_size(rest()));
    if (first == '\'' || first == '"') return literal();
    for (const std::string_view candidate : kOperators)
      if (rest().starts_with(candidate)) return operation(candidate);
    return syntax_error(
        line_, fmt::format("unexpected character '{}'", printable_excerpt(rest().substr(0, 1))));
  }

  static std::size_t name_size(std::string_view text) {
    std::size_t size = 0;
    while (size < text.size() && (begins_name(text[size]) || is_ascii_digit(text[size]))) ++size;
    return size;
  }

  /// The size of digits with single underscores between them.
  static std::size_t digits_size(std::string_view text) {
    std::size_t size = 0;
    while (size < text.size() && is_ascii_digit(text[size])) {
      ++size;
      const bool goes_on =
          size + 1 < text.size() && text[size] == '_' && is_ascii_digit(text[size + 1]);
      if (goes_on) ++size;
    }
    return size;
  }

  Result<void> number() {
    const std::string_view text = rest();
    std::size_t size = digits_size(text);
    bool is_float = false;
    // `pairs.0.1` is two subscripts, not a float.
    const bool is_subscript = position_ > 0 && source_[position_ - 1] == '.';
    if (is_subscript) return take_number(TokenKind::Integer, size);
    if (size < text.size() && text[size] == '.') {
      const std::size_t fraction = digits_size(text.substr(size + 1));
      is_float = fraction > 0;
      size += is_float ? 1 + fraction : 0;
    }
    if (size < text.size() && (text[size] == 'e' || text[size] == 'E')) {
      const std::size_t sign =
          size + 1 < text.size() && (text[size + 1] == '+' || text[size + 1] == '-');
      const std::size_t exponent = digits_size(text.substr(size + 1 + sign));
      is_float = is_float || exponent > 0;
      size += exponent > 0 ? 1 + sign + exponent : 0;
    }
    return take_number(is_float ? TokenKind::Float : TokenKind::Integer, size);
  }

  Result<void> take_number(TokenKind kind, std::size_t size) {
    TRY(take(kind, size));
    std::erase(tokens_.back().text, '_');
    return {};
  }

  Result<void> take(TokenKind kind, std::size_t bytes) {
    add(kind, std::string(rest().substr(0, bytes)));
    skip(bytes);
    return {};
  }

  Result<void> literal() {
    const std::size_t size = literal_size(rest());
    if (size == 0) return syntax_error(line_, "a string has no closing quote");
    const auto text = unescape_literal(rest().substr(1, size - 2));
    if (!text) return syntax_error(line_, text.error().detail);
    add(TokenKind::TextLiteral, *text);
    skip(size);
    return {};
  }

  Result<void> operation(std::string_view text) {
    static constexpr std::string_view kOpening = "([{", kClosing = ")]}";
    if (kOpening.contains(text[0])) brackets_ += kClosing[kOpening.find(text[0])];
    if (kClosing.contains(text[0])) {
      if (!brackets_.ends_with(text[0])) {
        return syntax_error(line_, fmt::format("'{}' has no opening bracket", text));
      }
      brackets_.pop_back();
    }
    return take(TokenKind::Operator, text.size());
  }

  std::string source_;
  std::size_t position_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::string brackets_;  // expected closing brackets, innermost last
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return fail(Errc::UnsupportedModel,
                fmt::format("the chat template has {} bytes; at most {} are supported",
                            source.size(), kMaxTemplateBytes));
  }
  return Lexer(source).run();
}

}  // namespace leasehold::jinja
