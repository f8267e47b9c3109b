#include "worker/text/chat/jinja/runtime.hpp"

#include <algorithm>

#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {

/// Breaks reference cycles: a namespace may contain itself.
Runtime::~Runtime() {
  for (const NamespaceRef& space : namespaces_) space->attributes.clear();
}

Result<void> Runtime::check_depth() const {
  if (depth_ <= limits_.call_depth) return {};
  return unsupported(fmt::format("evaluation nests deeper than {}", limits_.call_depth));
}

Result<void> Runtime::charge(std::uint64_t steps) {
  if (steps > steps_left_) {
    return too_long(
        fmt::format("takes more than {} steps; send fewer or shorter messages", limits_.steps));
  }
  steps_left_ -= steps;
  return {};
}

Result<void> Runtime::charge_for(const Value& value) {
  if (const std::string* text = value.as_text()) return charge_bytes(text->size());
  if (const List* list = value.as_list()) return charge(1 + list->items.size() / 4);
  if (const Dict* dict = value.as_dict()) return charge(1 + dict->entries().size() / 4);
  return charge(1);
}

Result<Value> Runtime::text(MarkedText text) {
  TRY(charge_bytes(text.size() + text.from_template().size_bytes()));
  return Value::text(std::move(text));
}

Result<std::uint32_t> Runtime::depth_above(std::uint32_t depth) const {
  if (depth < limits_.value_depth) return depth + 1;
  return unsupported(fmt::format("values nest deeper than {} levels", limits_.value_depth));
}

Result<Value> Runtime::list(std::vector<Value> items, bool is_tuple) {
  TRY(charge(1 + items.size()));
  std::uint32_t deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  const std::uint32_t depth = TRY(depth_above(deepest));
  return Value(std::make_shared<const List>(List{std::move(items), is_tuple, depth}));
}

Result<Value> Runtime::dict(std::vector<Dict::Entry> entries) {
  TRY(charge(1 + 2 * entries.size()));
  auto dict = std::make_shared<const Dict>(std::move(entries));
  TRY(depth_above(dict->depth() - 1));
  return Value(DictRef(std::move(dict)));
}

Result<Value> Runtime::callable(const Value& held,
                                std::function<Result<Value>(const Arguments&)> call) {
  TRY(charge(1));
  const std::uint32_t depth = TRY(depth_above(held.depth()));
  return Value(std::make_shared<const Callable>(Callable{std::move(call), depth}));
}

Value Runtime::make_namespace() {
  namespaces_.push_back(std::make_shared<Namespace>());
  return Value(namespaces_.back());
}

std::unexpected<Error> Runtime::bad_request(std::string_view detail) const {
  return fail(Errc::BadRequest, fmt::format("the chat template, line {}: {}", line_, detail));
}

std::unexpected<Error> Runtime::unsupported(std::string_view detail) const {
  return fail(Errc::UnsupportedModel, fmt::format("the chat template, line {}: {}", line_, detail));
}

std::unexpected<Error> Runtime::too_long(std::string_view detail) const {
  return fail(Errc::PromptTooLong, fmt::format("the chat template, line {}: {}", line_, detail));
}

Result<std::vector<Value>> Runtime::elements(const Value& value) {
  if (value.is_undefined()) return std::vector<Value>{};
  TRY(charge_for(value));
  if (const List* list = value.as_list()) return list->items;
  std::vector<Value> items;
  if (const Dict* dict = value.as_dict()) {
    for (const auto& entry : dict->entries()) items.push_back(entry.first);
    return items;
  }
  if (const MarkedText* text = value.as_marked_text()) {
    TRY(charge(text->size()));
    for (const std::string_view character : characters_of(text->bytes()))
      items.push_back(Value::text(text->part(character)));
    return items;
  }
  return bad_request(fmt::format("'{}' cannot be iterated", value.type_name()));
}

const Value* Parameters::given(std::string_view name) {
  if (position_ < given_.positional.size()) return &given_.positional[position_++];
  return named(name);
}

const Value* Parameters::named(std::string_view name) {
  const auto found = std::ranges::find_if(
      given_.named, [name](const auto& candidate) { return candidate.first == name; });
  if (found == given_.named.end()) return nullptr;
  ++taken_by_name_;
  return &found->second;
}

Value Parameters::next(std::string_view name, Value fallback) {
  const Value* value = given(name);
  if (value != nullptr) return *value;
  return fallback;
}

Result<void> Parameters::done(const Runtime& runtime) const {
  if (position_ == given_.positional.size() && taken_by_name_ == given_.named.size()) return {};
  return runtime.bad_request(fmt::format("'{}' does not take this argument", callee_));
}

}  // namespace leasehold::jinja
