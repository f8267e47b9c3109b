#include "worker/text/chat/jinja/text_operations.hpp"

#include <algorithm>

#include "worker/text/chat/jinja/formatting.hpp"

namespace leasehold::jinja {
namespace {

/// str.title() starts a word after every character without case. ASCII only.
MarkedText ascii_title(const MarkedText& text) {
  bool follows_letter = false;
  return map_characters(text, [&](std::string_view character) {
    const auto code_point = static_cast<std::uint32_t>(character[0]);
    const auto c = static_cast<char>(follows_letter ? to_lower(code_point) : to_upper(code_point));
    follows_letter = is_ascii_letter(c);
    return std::string(1, c);
  });
}

bool has_special_case_mapping(std::string_view character) {
  return next_utf8(character).kind == Utf8Kind::Character &&
         has_special_case(code_point_of(character));
}

std::uint32_t convert_code_point(std::uint32_t code_point, Case wanted, bool is_first) {
  switch (wanted) {
    case Case::Upper:
      return to_upper(code_point);
    case Case::Lower:
      return to_lower(code_point);
    case Case::Capital:
      return is_first ? to_title(code_point) : to_lower(code_point);
    case Case::Title:
      break;
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

Result<Value> convert_case(Runtime& runtime, const MarkedText& text, Case wanted) {
  if (wanted == Case::Title) {
    if (!is_ascii(text.bytes()))
      return runtime.unsupported("title case of letters beyond ASCII is not supported");
    return runtime.text(ascii_title(text));
  }
  TRY(runtime.charge(text.size() / 8));
  const auto characters = characters_of(text.bytes());
  const auto special = std::ranges::find_if(characters, has_special_case_mapping);
  if (special != characters.end())
    return runtime.unsupported(fmt::format("the case mapping of '{}' is not supported", *special));
  const char* const first = text.bytes().data();
  return runtime.text(map_characters(text, [&](std::string_view character) {
    std::string out;
    if (next_utf8(character).kind != Utf8Kind::Character) return std::string(character);
    append_utf8(out,
                convert_code_point(code_point_of(character), wanted, character.data() == first));
    return out;
  }));
}

Result<Value> strip_text(Runtime& runtime, const MarkedText& text, const Value& strip_chars,
                         StripSides ends) {
  if (strip_chars.is_none()) {
    std::string_view rest = text.bytes();
    if (ends.left) rest.remove_prefix(leading_space(rest));
    if (ends.right) rest.remove_suffix(trailing_space(rest));
    return runtime.text(text.part(rest));
  }
  const std::string set = TRY(require_text(runtime, "the characters to strip", strip_chars));
  TRY(runtime.charge(text.size() / 64 * (1 + set.size())));
  return runtime.text(text.part(without(text.bytes(), characters_of(set), ends)));
}

Result<Value> replace_text(Runtime& runtime, const MarkedText& marked_text, std::string_view from,
                           const MarkedText& to, std::int64_t most) {
  const std::string_view text = marked_text.bytes();
  MarkedText out;
  std::size_t position = 0;
  for (std::int64_t done = 0; most < 0 || done < most; ++done) {
    std::size_t at = find_text(text, from, position);
    // The empty text matches before each character and at the end.
    if (from.empty() && done > 0) {
      if (position == text.size()) break;
      at = position + characters_of(text.substr(position, 4)).front().size();
    }
    if (at == std::string_view::npos) break;
    out.append_part(marked_text, text.substr(position, at - position));
    out.append(to);
    TRY(runtime.charge_bytes(to.size() + at - position + from.size()));
    if (out.size() > runtime.limits().output_bytes) {
      return runtime.too_long("the output of replace exceeds the size of a prompt");
    }
    position = at + from.size();
  }
  out.append_part(marked_text, text.substr(position));
  return runtime.text(std::move(out));
}

Result<Value> join_text(Runtime& runtime, const MarkedText& separator,
                        const std::vector<Value>& parts) {
  MarkedText out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(TRY(to_text(runtime, parts[i])));
    TRY(runtime.charge_bytes(separator.size()));
  }
  return runtime.text(std::move(out));
}

Result<MarkedText> require_marked_text(Runtime& runtime, std::string_view what,
                                       const Value& value) {
  if (const MarkedText* text = value.as_marked_text()) {
    TRY(runtime.charge_bytes(text->size()));
    return *text;
  }
  return runtime.bad_request(fmt::format("{}: expected text, got '{}'", what, value.type_name()));
}

Result<std::string> require_text(Runtime& runtime, std::string_view what, const Value& value) {
  return TRY(require_marked_text(runtime, what, value)).take_bytes();
}

Result<std::int64_t> require_integer(Runtime& runtime, std::string_view what, const Value& value) {
  if (value.is_integer()) return value.integer();
  return runtime.bad_request(
      fmt::format("{}: expected an integer, got '{}'", what, value.type_name()));
}

}  // namespace leasehold::jinja
