#include "worker/text/chat/jinja/value.hpp"

namespace leasehold::jinja {

bool Value::is_truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0;
  if (const std::string* text = as_text()) return !text->empty();
  if (const List* list = as_list()) return !list->items.empty();
  if (const Dict* dict = as_dict()) return !dict->entries.empty();
  return true;
}

std::string_view Value::type_name() const {
  // In the order of Content.
  constexpr std::string_view kNames[] = {"undefined", "NoneType", "bool",    "int",
                                         "float",     "str",      "list",    "dict",
                                         "namespace", "loop",     "function"};
  static_assert(std::size(kNames) == std::variant_size_v<Content>);
  const List* list = as_list();
  return list != nullptr && list->is_tuple ? "tuple" : kNames[content_.index()];
}

std::uint32_t Value::depth() const {
  if (const List* list = as_list()) return list->depth;
  if (const Dict* dict = as_dict()) return dict->depth;
  if (const auto* loop = get<LoopRef>()) return (*loop)->items->depth + 1;
  if (const auto* callable = get<CallableRef>()) return (*callable)->depth;
  return 0;
}

}  // namespace leasehold::jinja
