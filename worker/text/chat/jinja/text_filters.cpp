// Filters that make text.
#include <algorithm>

#include "worker/text/chat/jinja/builtins.hpp"
#include "worker/text/chat/jinja/formatting.hpp"
#include "worker/text/chat/jinja/text_operations.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

constexpr std::int64_t kMaxIndent = 1000;

Result<Value> string(Runtime& runtime, const Value& subject, const BoundArguments&) {
  return runtime.text(TRY(to_text(runtime, subject)));
}

template <Case wanted>
Result<Value> case_filter(Runtime& runtime, const Value& subject, const BoundArguments&) {
  return convert_case(runtime, TRY(to_text(runtime, subject)), wanted);
}

/// Upper-cases the first letter of each word. Unlike str.title, an apostrophe does not end a word.
Result<Value> title(Runtime& runtime, const Value& subject, const BoundArguments&) {
  const MarkedText text = TRY(to_text(runtime, subject));
  const Value lower = TRY(convert_case(runtime, text, Case::Lower));
  const Value upper = TRY(convert_case(runtime, text, Case::Upper));
  const auto lower_characters = characters_of(*lower.as_text());
  const auto upper_characters = characters_of(*upper.as_text());
  bool at_start = true;
  std::size_t i = 0;
  return runtime.text(map_characters(text, [&](std::string_view) {
    const std::string_view character = (at_start ? upper_characters : lower_characters)[i++];
    at_start = space_at(character) > 0 || std::string_view("-({[<").contains(character);
    return character;
  }));
}

Result<Value> trim_filter(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  return strip_text(runtime, TRY(to_text(runtime, subject)), given.value(0), {});
}

Result<Value> replace_filter(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Value* const old_part = given.values[0];
  const Value* const new_part = given.values[1];
  const Value count = given.value(2);
  if (old_part == nullptr || new_part == nullptr)
    return runtime.bad_request("replace needs the old text and the new one");
  const MarkedText from = TRY(to_text(runtime, *old_part));
  const MarkedText to = TRY(to_text(runtime, *new_part));
  const std::int64_t most = count.is_none() ? -1 : TRY(require_integer(runtime, "replace", count));
  return replace_text(runtime, TRY(to_text(runtime, subject)), from.bytes(), to, most);
}

Result<Value> join_filter(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const MarkedText separator = TRY(to_text(runtime, given.value(0, Value::text(""))));
  const Value path = given.value(1);
  std::vector<Value> parts = TRY(runtime.elements(subject));
  if (!path.is_none()) {
    for (Value& part : parts) part = TRY(element_by_path(runtime, part, path));
  }
  return join_text(runtime, separator, parts);
}

/// The indentation of a width: a number of columns, or the text itself.
Result<MarkedText> margin_of(Runtime& runtime, std::string_view what, const Value& width) {
  if (width.is_text()) return *width.as_marked_text();
  const std::int64_t columns = TRY(require_integer(runtime, what, width));
  if (columns > kMaxIndent) return runtime.unsupported("indent supports at most 1000 columns");
  return MarkedText(std::string(static_cast<std::size_t>(std::max<std::int64_t>(columns, 0)), ' '),
                    TextOrigin::Template);
}

Result<Value> indent(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Value width = given.value(0, Value(std::int64_t{4}));
  const bool first = given.flag(1);
  const bool blank = given.flag(2);
  const MarkedText margin = TRY(margin_of(runtime, "indent", width));
  MarkedText text = TRY(require_marked_text(runtime, "indent", subject));
  // As in Jinja, an added newline keeps a newline at the end of the text.
  text.append("\n", TextOrigin::Template);
  MarkedText out;
  bool is_first = true;
  for (const std::string_view line : lines_of(text.bytes())) {
    TRY(runtime.charge_bytes(line.size() + margin.size()));
    if (!is_first) out.append("\n", TextOrigin::Template);
    if (is_first ? first : (blank || !line.empty())) out.append(margin);
    out.append_part(text, line);
    is_first = false;
  }
  return runtime.text(std::move(out));
}

Result<Value> escape(Runtime& runtime, const Value& subject, const BoundArguments&) {
  constexpr std::string_view kSpecial = "&<>\"'";
  constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
  const MarkedText text = TRY(to_text(runtime, subject));
  return runtime.text(map_characters(text, [&](std::string_view character) {
    const auto at = kSpecial.find(character);
    return at == std::string_view::npos ? character : kEntities[at];
  }));
}

/// The argument `separators` of json.dumps: item separator and key separator.
Result<void> read_separators(Runtime& runtime, const Value& pair, JsonStyle& style) {
  const List* list = pair.as_list();
  if (list == nullptr || list->items.size() != 2) {
    return runtime.bad_request("the separators of tojson must be two strings");
  }
  style.item_separator = TRY(require_text(runtime, "separators", list->items[0]));
  style.key_separator = TRY(require_text(runtime, "separators", list->items[1]));
  return {};
}

/// With Hugging Face's defaults instead of Jinja's: no HTML escapes, keys keep their order.
Result<Value> tojson(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  JsonStyle style;
  style.ascii_only = given.flag(0);
  const Value indent_by = given.value(1);
  const Value separators = given.value(2);
  style.sort_keys = given.flag(3);
  if (!indent_by.is_none()) {
    style.item_separator = ",";
    style.indent = TRY(margin_of(runtime, "the indent of tojson", indent_by)).take_bytes();
  }
  if (!separators.is_none()) TRY(read_separators(runtime, separators, style));
  return runtime.text(TRY(to_json(runtime, subject, style)));
}

constexpr Builtin<Filter> kTextFilters[] = {
    {"capitalize", case_filter<Case::Capital>},
    {"e", escape},
    {"escape", escape},
    {"indent", indent, {"width", "first", "blank"}},
    {"join", join_filter, {"d", "attribute"}},
    {"lower", case_filter<Case::Lower>},
    {"replace", replace_filter, {"old", "new", "count"}},
    {"safe", string},
    {"string", string},
    {"title", title},
    {"tojson", tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {"trim", trim_filter, {"chars"}},
    {"upper", case_filter<Case::Upper>},
};

}  // namespace

const Builtin<Filter>* find_text_filter(std::string_view name) {
  return find_builtin(kTextFilters, name);
}

}  // namespace leasehold::jinja
