#include "worker/text/chat/jinja/value.hpp"

#include <algorithm>

namespace leasehold::jinja {
namespace {

/// A scan of fewer entries is faster than a hash.
constexpr std::size_t kMinIndexedEntries = 9;

}  // namespace

bool Value::is_truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0;
  if (const std::string* text = as_text()) return !text->empty();
  if (const List* list = as_list()) return !list->items.empty();
  if (const Dict* dict = as_dict()) return !dict->entries().empty();
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
  if (const Dict* dict = as_dict()) return dict->depth();
  if (const auto* loop = get<LoopRef>()) return (*loop)->items->depth + 1;
  if (const auto* callable = get<CallableRef>()) return (*callable)->depth;
  return 0;
}

Dict::Dict(std::vector<Entry> entries) : entries_(std::move(entries)) {
  for (const auto& [key, value] : entries_)
    depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
  if (entries_.size() < kMinIndexedEntries) return;
  index_.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (const std::string* text = entries_[i].first.as_text()) index_.emplace(*text, i);
}

const Value* Dict::find(std::string_view key) const {
  if (entries_.size() >= kMinIndexedEntries) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &entries_[found->second].second;
  }
  const auto found = std::ranges::find_if(entries_, [key](const Entry& entry) {
    return entry.first.is_text() && *entry.first.as_text() == key;
  });
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace leasehold::jinja
