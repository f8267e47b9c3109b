#include "worker/text/chat/jinja/formatting.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

std::string escaped_number(std::uint32_t code_point) {
  if (code_point < 0x100) return fmt::format("\\x{:02x}", code_point);
  if (code_point < 0x10000) return fmt::format("\\u{:04x}", code_point);
  return fmt::format("\\U{:08x}", code_point);
}

std::string python_quoted(std::string_view text) {
  const bool only_single = text.contains('\'') && !text.contains('"');
  const char quote = only_single ? '"' : '\'';
  std::string out(1, quote);
  for (const std::string_view character : characters_of(text)) {
    const char c = character[0];
    if (c == quote || c == '\\') {
      out.append(1, '\\').append(1, c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (const std::uint32_t number = code_point_of(character); is_printable(number)) {
      out += character;
    } else {
      out += escaped_number(number);
    }
  }
  return out + quote;
}

/// str() of a value that is not a text.
Result<std::string> printed(Runtime& runtime, const Value& value);
/// repr(): the form of a value in a printed list.
Result<void> append_repr(Runtime& runtime, const Value& value, std::string& out);

Result<void> append_list(Runtime& runtime, const List& list, std::string& out) {
  out += list.is_tuple ? '(' : '[';
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out += ", ";
    TRY(append_repr(runtime, list.items[i], out));
  }
  if (list.is_tuple && list.items.size() == 1) out += ',';
  out += list.is_tuple ? ')' : ']';
  return {};
}

Result<void> append_dict(Runtime& runtime, const Dict& dict, std::string& out) {
  out += '{';
  for (std::size_t i = 0; i < dict.entries().size(); ++i) {
    if (i > 0) out += ", ";
    TRY(append_repr(runtime, dict.entries()[i].first, out));
    out += ": ";
    TRY(append_repr(runtime, dict.entries()[i].second, out));
  }
  out += '}';
  return {};
}

Result<void> append_repr(Runtime& runtime, const Value& value, std::string& out) {
  TRY(runtime.charge_for(value));
  if (const List* list = value.as_list()) return append_list(runtime, *list, out);
  if (const Dict* dict = value.as_dict()) return append_dict(runtime, *dict, out);
  if (const std::string* text = value.as_text()) {
    TRY(runtime.charge(text->size() / 8));
    out += python_quoted(*text);
  } else {
    out += value.is_undefined() ? "Undefined" : TRY(printed(runtime, value));
  }
  if (out.size() <= runtime.limits().output_bytes) return {};
  return runtime.too_long("a list or dict is too long to print");
}

/// str() of a value that is not a text.
Result<std::string> printed(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) return std::string();
  if (value.is_none()) return std::string("None");
  if (const bool* truth = value.get<bool>()) return std::string(*truth ? "True" : "False");
  if (value.is_integer()) return std::to_string(value.integer());
  if (value.is_number()) return float_text(value.number());
  if (!value.is<ListRef>() && !value.is<DictRef>()) return fmt::format("<{}>", value.type_name());
  std::string out;
  TRY(append_repr(runtime, value, out));
  return out;
}

}  // namespace

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char digits[32];
  const double size = std::fabs(number);
  // Python's own bounds for leaving the plain notation.
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(digits, digits + sizeof(digits), number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(digits, end.ptr);
  if (plain && !text.contains('.')) text += ".0";
  return text;
}

Result<MarkedText> to_text(Runtime& runtime, const Value& value) {
  TRY(runtime.charge_for(value));
  if (const MarkedText* text = value.as_marked_text()) return *text;
  return MarkedText(TRY(printed(runtime, value)), TextOrigin::Client);
}

}  // namespace leasehold::jinja
