// Methods of text, such as str.strip.
#include <algorithm>

#include "common/utf8.hpp"
#include "worker/text/chat/jinja/builtins.hpp"
#include "worker/text/chat/jinja/formatting.hpp"
#include "worker/text/chat/jinja/text_operations.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

const MarkedText& marked_self(const Value& self) {
  return *self.as_marked_text();
}

const std::string& self_text(const Value& self) {
  return marked_self(self).bytes();
}

template <Case wanted>
Result<Value> case_method(Runtime& runtime, const Value& self, const BoundArguments&) {
  return convert_case(runtime, marked_self(self), wanted);
}

template <bool left, bool right>
Result<Value> strip(Runtime& runtime, const Value& self, const BoundArguments& given) {
  return strip_text(runtime, marked_self(self), given.value(0), {.left = left, .right = right});
}

/// The argument is a text or a tuple of texts.
template <bool at_end>
Result<Value> begins_or_ends(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const Value wanted = given.value(0);
  const List* several = wanted.as_list();
  const std::vector<Value> parts = several != nullptr ? several->items : std::vector{wanted};
  const std::string& text = self_text(self);
  for (const Value& part : parts) {
    const std::string end = TRY(require_text(runtime, at_end ? "endswith" : "startswith", part));
    if (at_end ? text.ends_with(end) : text.starts_with(end)) return Value(true);
  }
  return Value(false);
}

template <bool at_end>
Result<Value> without_affix(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const std::string affix = TRY(require_text(runtime, "removeprefix", given.value(0)));
  const std::string_view text = self_text(self);
  if (at_end ? !text.ends_with(affix) : !text.starts_with(affix)) return self;
  return runtime.text(
      marked_self(self).part(text.substr(at_end ? 0 : affix.size(), text.size() - affix.size())));
}

/// The parts between runs of white space; none is empty.
std::vector<std::string_view> words_of(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> words;
  text.remove_prefix(leading_space(text));
  while (!text.empty()) {
    std::size_t size = 0;
    const bool is_last = most >= 0 && std::cmp_equal(words.size(), most);
    if (is_last) size = text.size();
    while (!is_last && size < text.size() && space_at(text.substr(size)) == 0)
      size += next_utf8(text.substr(size)).size_bytes;
    words.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
    text.remove_prefix(leading_space(text));
  }
  return words;
}

std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator,
                                       std::int64_t most) {
  std::vector<std::string_view> parts;
  std::size_t position = 0;
  while (most < 0 || std::cmp_less(parts.size(), most)) {
    const std::size_t at = find_text(text, separator, position);
    if (at == std::string_view::npos) break;
    parts.emplace_back(text.substr(position, at - position));
    position = at + separator.size();
  }
  parts.emplace_back(text.substr(position));
  return parts;
}

/// Splits from the right: with a limit, the rightmost separators count.
std::vector<std::string_view> parts_from_right(std::string_view text, std::string_view separator,
                                               std::int64_t most) {
  std::vector<std::string_view> parts;
  while (most < 0 || std::cmp_less(parts.size(), most)) {
    const std::size_t at = text.rfind(separator);
    if (at == std::string_view::npos) break;
    parts.emplace_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.emplace_back(text);
  std::ranges::reverse(parts);
  return parts;
}

template <bool from_right>
Result<Value> split(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const Value separator = given.value(0);
  const std::int64_t most =
      TRY(require_integer(runtime, "maxsplit", given.value(1, Value(std::int64_t{-1}))));
  const std::string& text = self_text(self);
  TRY(runtime.charge(text.size() / 4));
  std::vector<std::string_view> parts;
  if (separator.is_none()) {
    if (from_right && most >= 0)
      return runtime.unsupported("rsplit at white space with a limit is not supported");
    parts = words_of(text, most);
  } else {
    const std::string between = TRY(require_text(runtime, "the separator", separator));
    if (between.empty()) return runtime.bad_request("the separator of split is empty");
    if (from_right) TRY(runtime.charge(text.size() / 64 * between.size()));
    parts = from_right ? parts_from_right(text, between, most) : parts_of(text, between, most);
  }
  std::vector<Value> items;
  for (const std::string_view part : parts)
    items.push_back(Value::text(marked_self(self).part(part)));
  return runtime.list(std::move(items));
}

Result<Value> splitlines(Runtime& runtime, const Value& self, const BoundArguments& given) {
  if (given.flag(0)) return runtime.unsupported("splitlines with keepends is not supported");
  std::vector<Value> items;
  for (const std::string_view line : lines_of(self_text(self)))
    items.push_back(Value::text(marked_self(self).part(line)));
  return runtime.list(std::move(items));
}

Result<Value> replace_method(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const std::string from = TRY(require_text(runtime, "replace", given.value(0)));
  const MarkedText to = TRY(require_marked_text(runtime, "replace", given.value(1)));
  const Value most = given.value(2, Value(std::int64_t{-1}));
  return replace_text(runtime, marked_self(self), from, to,
                      TRY(require_integer(runtime, "replace", most)));
}

template <bool last>
Result<Value> find(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const std::string wanted = TRY(require_text(runtime, "find", given.value(0)));
  const std::string& text = self_text(self);
  if (last) TRY(runtime.charge(text.size() / 64 * wanted.size()));
  const std::size_t at = last ? text.rfind(wanted) : find_text(text, wanted);
  if (at == std::string::npos) return Value(std::int64_t{-1});
  return Value(static_cast<std::int64_t>(count_characters(std::string_view(text).substr(0, at))));
}

Result<Value> count(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const std::string wanted = TRY(require_text(runtime, "count", given.value(0)));
  const std::string& text = self_text(self);
  if (wanted.empty()) return Value(static_cast<std::int64_t>(count_characters(text) + 1));
  return Value(static_cast<std::int64_t>(parts_of(text, wanted, -1).size() - 1));
}

Result<Value> join_method(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const auto parts = TRY(runtime.elements(given.value(0)));
  const auto is_text = [](const Value& part) { return part.is_text(); };
  if (!std::ranges::all_of(parts, is_text)) return runtime.bad_request("join() needs strings");
  return join_text(runtime, marked_self(self), parts);
}

/// Supports `{}`, `{0}` and `{name}`, without conversions and format specifications.
Result<Value> format(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const MarkedText& text = marked_self(self);
  std::string_view rest = text.bytes();
  MarkedText out;
  std::size_t position = 0;
  while (!rest.empty()) {
    const std::size_t size = std::min(rest.find_first_of("{}"), rest.size());
    out.append_part(text, rest.substr(0, size));
    rest.remove_prefix(size);
    if (rest.empty()) break;
    if (rest.starts_with("{{") || rest.starts_with("}}")) {
      out.append_part(text, rest.substr(0, 1));
      rest.remove_prefix(2);
      continue;
    }
    const std::size_t end = rest.find('}');
    const std::string field(rest.substr(0, std::min(end, rest.size())).substr(1));
    if (rest[0] == '}' || end == std::string_view::npos) {
      return runtime.bad_request("unbalanced bracket in format()");
    }
    rest.remove_prefix(end + 1);
    if (field.find_first_of("{!:.[") != std::string::npos) {
      return runtime.unsupported("format() supports only a position or a name in brackets");
    }
    const Value* value = nullptr;
    for (const auto& [name, candidate] : given.all.named)
      if (name == field) value = &candidate;
    const bool is_place = std::ranges::all_of(field, [](char c) { return c >= '0' && c <= '9'; });
    if (is_place && field.size() < 6) {
      const std::size_t index = field.empty() ? position++ : std::stoul(field);
      if (index < given.all.positional.size()) value = &given.all.positional[index];
    }
    if (value == nullptr) return runtime.bad_request("format() has too few arguments");
    out.append(TRY(to_text(runtime, *value)));
  }
  return runtime.text(std::move(out));
}

template <bool (*holds)(char)>
Result<Value> all_characters(Runtime& runtime, const Value& self, const BoundArguments&) {
  const std::string& text = self_text(self);
  if (!is_ascii(text))
    return runtime.unsupported("tests of letters beyond ASCII are not supported");
  return Value(!text.empty() && std::ranges::all_of(text, holds));
}

bool is_ascii_alphanumeric(char c) {
  return is_ascii_digit(c) || is_ascii_letter(c);
}
bool is_ascii_space_character(char c) {
  return space_at({&c, 1}) > 0;
}

constexpr Builtin<Method> kTextMethods[] = {
    {"capitalize", case_method<Case::Capital>},
    {"count", count, {"sub"}},
    {"endswith", begins_or_ends<true>, {"prefix"}},
    {"find", find<false>, {"sub"}},
    {"format", format, kAnyArguments},
    {"isalnum", all_characters<is_ascii_alphanumeric>},
    {"isalpha", all_characters<is_ascii_letter>},
    {"isdigit", all_characters<is_ascii_digit>},
    {"isspace", all_characters<is_ascii_space_character>},
    {"join", join_method, {"iterable"}},
    {"lower", case_method<Case::Lower>},
    {"lstrip", strip<true, false>, {"chars"}},
    {"removeprefix", without_affix<false>, {"prefix"}},
    {"removesuffix", without_affix<true>, {"prefix"}},
    {"replace", replace_method, {"old", "new", "count"}},
    {"rfind", find<true>, {"sub"}},
    {"rsplit", split<true>, {"sep", "maxsplit"}},
    {"rstrip", strip<false, true>, {"chars"}},
    {"split", split<false>, {"sep", "maxsplit"}},
    {"splitlines", splitlines, {"keepends"}},
    {"startswith", begins_or_ends<false>, {"prefix"}},
    {"strip", strip<true, true>, {"chars"}},
    {"title", case_method<Case::Title>},
    {"upper", case_method<Case::Upper>},
};

}  // namespace

const Builtin<Method>* find_text_method(std::string_view name) {
  return find_builtin(kTextMethods, name);
}

}  // namespace leasehold::jinja
