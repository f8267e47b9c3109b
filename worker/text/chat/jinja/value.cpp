#include "worker/text/chat/jinja/value.hpp"

#include <algorithm>

namespace leasehold::jinja {
namespace {

struct Truth {
  bool operator()(const Undefined&) const { return false; }
  bool operator()(const None&) const { return false; }
  bool operator()(bool value) const { return value; }
  bool operator()(std::int64_t value) const { return value != 0; }
  bool operator()(double value) const { return value != 0; }
  bool operator()(const Text& text) const { return !text->empty(); }
  bool operator()(const ListRef& list) const { return !list->items.empty(); }
  bool operator()(const DictRef& dict) const { return !dict->entries.empty(); }
  bool operator()(const NamespaceRef&) const { return true; }
  bool operator()(const LoopRef&) const { return true; }
  bool operator()(const CallableRef&) const { return true; }
};

struct TypeName {
  std::string_view operator()(const Undefined&) const { return "undefined"; }
  std::string_view operator()(const None&) const { return "NoneType"; }
  std::string_view operator()(bool) const { return "bool"; }
  std::string_view operator()(std::int64_t) const { return "int"; }
  std::string_view operator()(double) const { return "float"; }
  std::string_view operator()(const Text&) const { return "str"; }
  std::string_view operator()(const ListRef& list) const {
    return list->is_tuple ? "tuple" : "list";
  }
  std::string_view operator()(const DictRef&) const { return "dict"; }
  std::string_view operator()(const NamespaceRef&) const { return "namespace"; }
  std::string_view operator()(const LoopRef&) const { return "loop"; }
  std::string_view operator()(const CallableRef&) const { return "function"; }
};

}  // namespace

bool Value::is_truthy() const {
  return std::visit(Truth{}, content_);
}

std::string_view Value::type_name() const {
  return std::visit(TypeName{}, content_);
}

std::uint32_t Value::depth() const {
  if (const List* list = as_list()) return list->depth;
  if (const Dict* dict = as_dict()) return dict->depth;
  if (const auto* loop = get<LoopRef>()) return (*loop)->items->depth + 1;
  if (const auto* callable = get<CallableRef>()) return (*callable)->depth;
  return 0;
}

const Value* Dict::find(std::string_view key) const {
  const auto entry = std::ranges::find_if(entries, [key](const Entry& candidate) {
    const std::string* text = candidate.first.as_text();
    return text != nullptr && *text == key;
  });
  return entry == entries.end() ? nullptr : &entry->second;
}

}  // namespace leasehold::jinja
