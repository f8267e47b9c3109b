#include "worker/text/chat/jinja/text_operations.hpp"

#include <algorithm>

#include "worker/text/chat/jinja/formatting.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
char upper(char c) {
  return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
}
char lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

char convert_case(char c, Case wanted, bool is_first, bool follows_letter) {
  switch (wanted) {
    case Case::Upper:
      return upper(c);
    case Case::Lower:
      return lower(c);
    case Case::Title:
      return follows_letter ? lower(c) : upper(c);
    case Case::Capital:
      return is_first ? upper(c) : lower(c);
  }
  std::unreachable();
}

std::string_view without(std::string_view text, const std::vector<std::string_view>& strip_chars,
                         StripSides ends) {
  const auto begins = [&](std::string_view part) { return text.starts_with(part); };
  const auto finishes = [&](std::string_view part) { return text.ends_with(part); };
  while (ends.left && !text.empty()) {
    const auto found = std::ranges::find_if(strip_chars, begins);
    if (found == strip_chars.end()) break;
    text.remove_prefix(found->size());
  }
  while (ends.right && !text.empty()) {
    const auto found = std::ranges::find_if(strip_chars, finishes);
    if (found == strip_chars.end()) break;
    text.remove_suffix(found->size());
  }
  return text;
}

}  // namespace

Result<Value> convert_case(Runtime& runtime, std::string_view text, Case wanted) {
  if (!is_ascii(text)) {
    return runtime.unsupported("upper and lower case of letters beyond ASCII");
  }
  std::string out(text);
  bool follows_letter = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = convert_case(out[i], wanted, i == 0, follows_letter);
    follows_letter = is_upper(out[i]) || is_lower(out[i]);
  }
  return runtime.text(std::move(out));
}

Result<Value> strip_text(Runtime& runtime, std::string_view text, const Value& strip_chars,
                         StripSides ends) {
  if (strip_chars.is_none()) {
    if (ends.left) text.remove_prefix(leading_space(text));
    if (ends.right) text.remove_suffix(trailing_space(text));
    return runtime.text(std::string(text));
  }
  const std::string set = TRY(require_text(runtime, "the characters to strip", strip_chars));
  TRY(runtime.charge(text.size() / 64 * (1 + set.size())));
  return runtime.text(std::string(without(text, characters_of(set), ends)));
}

Result<Value> replace_text(Runtime& runtime, std::string_view text, std::string_view from,
                           std::string_view to, std::int64_t most) {
  std::string out;
  std::size_t position = 0;
  for (std::int64_t done = 0; most < 0 || done < most; ++done) {
    std::size_t at = find_text(text, from, position);
    // Nothing stands in front of each character, and at the end.
    if (from.empty() && done > 0) {
      if (position == text.size()) break;
      at = position + characters_of(text.substr(position, 4)).front().size();
    }
    if (at == std::string_view::npos) break;
    out.append(text.substr(position, at - position)).append(to);
    TRY(runtime.charge_bytes(to.size() + at - position + from.size()));
    if (out.size() > runtime.limits().output_bytes) {
      return runtime.too_long("replace makes more text than a prompt may have");
    }
    position = at + from.size();
  }
  out += text.substr(position);
  return runtime.text(std::move(out));
}

Result<Value> join_text(Runtime& runtime, std::string_view separator,
                        const std::vector<Value>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += TRY(to_text(runtime, parts[i]));
    TRY(runtime.charge_bytes(separator.size()));
  }
  return runtime.text(std::move(out));
}

Result<std::string> require_text(Runtime& runtime, std::string_view what, const Value& value) {
  if (const std::string* text = value.as_text()) {
    TRY(runtime.charge_bytes(text->size()));
    return *text;
  }
  return runtime.bad_request(fmt::format("{}: expected text, got '{}'", what, value.type_name()));
}

Result<std::int64_t> require_integer(Runtime& runtime, std::string_view what, const Value& value) {
  if (value.is_integer()) return value.integer();
  return runtime.bad_request(
      fmt::format("{}: expected a whole number, got '{}'", what, value.type_name()));
}

}  // namespace leasehold::jinja
