// Equality, order and containment of values.
#include <algorithm>
#include <cmath>
#include <compare>

#include "worker/text/chat/jinja/operators.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

/// Compares exactly, even integers that a double cannot represent.
std::partial_ordering compare_numbers(const Value& left, const Value& right) {
  if (left.is_integer() && right.is_integer()) return left.integer() <=> right.integer();
  if (!left.is_integer() && !right.is_integer()) return left.number() <=> right.number();
  const auto mixed = static_cast<long double>(left.is_integer() ? left.integer() : 0) +
                     static_cast<long double>(right.is_integer() ? right.integer() : 0);
  if (left.is_integer()) return mixed <=> static_cast<long double>(right.number());
  return static_cast<long double>(left.number()) <=> mixed;
}

Result<bool> lists_equal(Runtime& runtime, const List& left, const List& right) {
  if (left.is_tuple != right.is_tuple || left.items.size() != right.items.size()) return false;
  for (std::size_t i = 0; i < left.items.size(); ++i)
    if (!TRY(are_equal(runtime, left.items[i], right.items[i]))) return false;
  return true;
}

Result<bool> dicts_equal(Runtime& runtime, const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Value* other = TRY(find_entry(runtime, right, key));
    if (other == nullptr || !TRY(are_equal(runtime, value, *other))) return false;
  }
  return true;
}

Result<bool> lists_less(Runtime& runtime, const List& left, const List& right) {
  const std::size_t common = std::min(left.items.size(), right.items.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (!TRY(are_equal(runtime, left.items[i], right.items[i])))
      return is_less(runtime, left.items[i], right.items[i]);
  }
  return left.items.size() < right.items.size();
}

}  // namespace

Result<bool> are_equal(Runtime& runtime, const Value& left, const Value& right) {
  TRY(runtime.charge(1));
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.is_text() && right.is_text()) {
    const std::string &one = *left.as_text(), &other = *right.as_text();
    if (one.size() != other.size()) return false;
    TRY(runtime.charge_bytes(one.size()));
    return one == other;
  }
  if (left.as_list() != nullptr && right.as_list() != nullptr) {
    return lists_equal(runtime, *left.as_list(), *right.as_list());
  }
  if (left.as_dict() != nullptr && right.as_dict() != nullptr) {
    return dicts_equal(runtime, *left.as_dict(), *right.as_dict());
  }
  if (const auto* space = left.get<NamespaceRef>()) {
    return right.is<NamespaceRef>() && *space == *right.get<NamespaceRef>();
  }
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

Result<bool> is_less(Runtime& runtime, const Value& left, const Value& right) {
  TRY(runtime.charge(1));
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) < 0;
  if (left.is_text() && right.is_text()) {
    TRY(runtime.charge_bytes(std::min(left.as_text()->size(), right.as_text()->size())));
    return *left.as_text() < *right.as_text();
  }
  const List *one = left.as_list(), *other = right.as_list();
  if (one != nullptr && other != nullptr && one->is_tuple == other->is_tuple) {
    return lists_less(runtime, *one, *other);
  }
  return runtime.bad_request(
      fmt::format("'{}' and '{}' cannot be ordered", left.type_name(), right.type_name()));
}

Result<const Value*> find_entry(Runtime& runtime, const Dict& dict, const Value& key) {
  TRY(runtime.charge_for(key.is_text() ? key : Value()));
  if (const std::string* text = key.as_text()) return dict.find(*text);
  for (const auto& entry : dict.entries())
    if (TRY(are_equal(runtime, entry.first, key))) return &entry.second;
  return nullptr;
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& wanted) {
  TRY(runtime.charge_for(container.is_text() ? container : Value()));
  if (const std::string* text = container.as_text()) {
    const std::string* part = wanted.as_text();
    if (part == nullptr) {
      return runtime.bad_request(fmt::format("a '{}' cannot be in a string", wanted.type_name()));
    }
    return find_text(*text, *part) != std::string_view::npos;
  }
  if (const Dict* dict = container.as_dict())
    return TRY(find_entry(runtime, *dict, wanted)) != nullptr;
  if (const List* list = container.as_list()) {
    for (const Value& item : list->items)
      if (TRY(are_equal(runtime, item, wanted))) return true;
    return false;
  }
  if (container.is_undefined()) return false;
  return runtime.bad_request(fmt::format("'{}' is not a container", container.type_name()));
}

Result<bool> compare(Runtime& runtime, std::string_view operation, const Value& left,
                     const Value& right) {
  if (operation == "==") return are_equal(runtime, left, right);
  if (operation == "!=") return !TRY(are_equal(runtime, left, right));
  if (operation == "in") return contains(runtime, right, left);
  if (operation == "not in") return !TRY(contains(runtime, right, left));
  if (operation == "<") return is_less(runtime, left, right);
  if (operation == ">") return is_less(runtime, right, left);
  // This is not the negation of the opposite comparison, because of NaN.
  const bool less =
      operation == "<=" ? TRY(is_less(runtime, left, right)) : TRY(is_less(runtime, right, left));
  return less || TRY(are_equal(runtime, left, right));
}

}  // namespace leasehold::jinja
