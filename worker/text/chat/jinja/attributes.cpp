// Attributes, elements and methods of values.
#include <algorithm>

#include "common/utf8.hpp"
#include "worker/text/chat/jinja/builtins.hpp"
#include "worker/text/chat/jinja/operators.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

Result<Value> dict_get(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const Value* found = TRY(find_entry(runtime, *self.as_dict(), given.value(0)));
  return found != nullptr ? *found : given.value(1);
}

Result<Value> dict_items(Runtime& runtime, const Value& self, const BoundArguments& given) {
  return apply_filter(runtime, "items", self, given.all);
}

Result<Value> dict_keys(Runtime& runtime, const Value& self, const BoundArguments& given) {
  return apply_filter(runtime, "list", self, given.all);
}

Result<Value> dict_values(Runtime& runtime, const Value& self, const BoundArguments&) {
  std::vector<Value> values;
  for (const auto& entry : self.as_dict()->entries()) values.push_back(entry.second);
  return runtime.list(std::move(values));
}

Result<Value> list_count(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const Value wanted = given.value(0);
  std::int64_t count = 0;
  for (const Value& item : self.as_list()->items)
    count += TRY(are_equal(runtime, item, wanted)) ? 1 : 0;
  return Value(count);
}

Result<Value> list_index(Runtime& runtime, const Value& self, const BoundArguments& given) {
  const Value wanted = given.value(0);
  const std::vector<Value>& items = self.as_list()->items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (TRY(are_equal(runtime, items[i], wanted))) return Value(static_cast<std::int64_t>(i));
  return runtime.bad_request("index() did not find the element");
}

constexpr Builtin<Method> kDictMethods[] = {{"get", dict_get, {"key", "default"}},
                                            {"items", dict_items, kAnyArguments},
                                            {"keys", dict_keys, kAnyArguments},
                                            {"values", dict_values}};
constexpr Builtin<Method> kListMethods[] = {{"count", list_count, {"value"}},
                                            {"index", list_index, {"value"}}};

const Builtin<Method>* find_method(const Value& value, std::string_view name) {
  if (value.is_text()) return find_text_method(name);
  if (value.as_dict() != nullptr) return find_builtin(kDictMethods, name);
  return value.as_list() != nullptr ? find_builtin(kListMethods, name) : nullptr;
}

// ---------------------------------------------------------------------------------------- `loop`

Result<Value> cycle(Runtime& runtime, const LoopRef& loop) {
  return runtime.callable(Value(loop), [loop](const Arguments& given) -> Result<Value> {
    if (given.positional.empty()) return Value(None{});
    return given.positional[loop->index0 % given.positional.size()];
  });
}

Result<Value> loop_attribute(Runtime& runtime, const LoopRef& loop, std::string_view name) {
  const std::vector<Value>& items = loop->items->items;
  const auto number = [](std::size_t value) { return Value(static_cast<std::int64_t>(value)); };
  const std::size_t index0 = loop->index0, size = items.size();
  if (name == "index") return number(index0 + 1);
  if (name == "index0") return number(index0);
  if (name == "first") return Value(index0 == 0);
  if (name == "last") return Value(index0 + 1 == size);
  if (name == "length") return number(size);
  if (name == "revindex") return number(size - index0);
  if (name == "revindex0") return number(size - index0 - 1);
  // The depth is always 1, because recursive loops are not supported.
  if (name == "depth") return number(1);
  if (name == "depth0") return number(0);
  if (name == "previtem" && index0 > 0) return items[index0 - 1];
  if (name == "previtem") return Value::undefined("there is no previous item");
  if (name == "nextitem" && index0 + 1 < size) return items[index0 + 1];
  if (name == "nextitem") return Value::undefined("there is no next item");
  if (name == "cycle") return cycle(runtime, loop);
  return runtime.unsupported(fmt::format("'loop.{}' is not supported", printable_excerpt(name)));
}

/// The entry or attribute `name`, without methods; undefined if there is none.
Value member(const Value& value, std::string_view name) {
  if (const Dict* dict = value.as_dict())
    if (const Value* entry = dict->find(name)) return *entry;
  if (const auto* space = value.get<NamespaceRef>()) {
    const auto found = (*space)->attributes.find(std::string(name));
    if (found != (*space)->attributes.end()) return found->second;
  }
  return Value::undefined(fmt::format("'{}' has no '{}'", value.type_name(), name));
}

}  // namespace

Result<Value> method_of(Runtime& runtime, const Value& value, std::string_view name) {
  const Builtin<Method>* method = find_method(value, name);
  if (method == nullptr) return Value();
  return runtime.callable(
      value, [&runtime, value, method](const Arguments& given) -> Result<Value> {
        TRY(runtime.charge_for(value.is_text() ? value : Value()));
        return method->function(
            runtime, value, TRY(bind_arguments(runtime, method->name, method->parameters, given)));
      });
}

Result<Value> attribute_of(Runtime& runtime, const Value& value, std::string_view name) {
  if (value.is_undefined()) {
    const auto& what = value.get<Undefined>()->what;
    return runtime.bad_request(what ? *what : "something undefined has no attributes");
  }
  TRY(runtime.charge(1));
  if (const auto* loop = value.get<LoopRef>()) return loop_attribute(runtime, *loop, name);
  const Value method = TRY(method_of(runtime, value, name));
  return method.is_undefined() ? member(value, name) : method;
}

Result<Value> element_of(Runtime& runtime, const Value& value, const Value& index) {
  if (const Dict* dict = value.as_dict())
    if (const Value* entry = TRY(find_entry(runtime, *dict, index))) return *entry;
  if (index.is_text()) {
    TRY(runtime.charge_for(index));
    return attribute_of(runtime, value, *index.as_text());
  }
  if (value.is_undefined()) return attribute_of(runtime, value, "");
  auto missing = Value::undefined(fmt::format("'{}' has no such element", value.type_name()));
  if (!index.is_integer()) return missing;
  TRY(runtime.charge_for(value.is_text() ? value : Value()));
  const auto resolve_index = [&](std::size_t length) -> std::optional<std::size_t> {
    const auto size = static_cast<std::int64_t>(length);
    const std::int64_t position = index.integer() < 0 ? index.integer() + size : index.integer();
    if (position < 0 || position >= size) return std::nullopt;
    return static_cast<std::size_t>(position);
  };
  if (const List* list = value.as_list()) {
    const auto position = resolve_index(list->items.size());
    return position ? list->items[*position] : missing;
  }
  const std::string* text = value.as_text();
  if (text == nullptr) return missing;
  const auto position = resolve_index(count_characters(*text));
  if (!position) return missing;
  std::string_view rest = *text;
  for (std::size_t i = 0; i < *position; ++i) rest.remove_prefix(next_utf8(rest).size_bytes);
  const std::string_view character = rest.substr(0, next_utf8(rest).size_bytes);
  return runtime.text(value.as_marked_text()->part(character));
}

Result<Value> element_by_path(Runtime& runtime, const Value& value, const Value& path,
                              const Value& fallback) {
  const auto or_fallback = [&fallback](Value found) {
    return found.is_undefined() && !fallback.is_none() ? fallback : found;
  };
  if (!path.is_text()) return or_fallback(TRY(element_of(runtime, value, path)));
  TRY(runtime.charge_for(path));
  Value at = value;
  std::string_view rest = *path.as_text();
  while (true) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    const bool is_number = !part.empty() && part.size() < 10 &&
                           std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    const Value index = is_number ? Value(static_cast<std::int64_t>(std::stol(std::string(part))))
                                  : Value::text(std::string(part));
    at = or_fallback(TRY(element_of(runtime, at, index)));
    if (part.size() == rest.size()) return at;
    rest.remove_prefix(part.size() + 1);
  }
}

}  // namespace leasehold::jinja
