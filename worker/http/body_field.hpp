/// A field of a parsed body. Pure.
#pragma once

#include <nlohmann/json.hpp>

namespace leasehold::http {

using OrderedJson = nlohmann::ordered_json;  ///< A schema's members keep their order.

/// Null for a field that is missing or null, and unless `in` is an object.
inline const OrderedJson* field_of(const OrderedJson& in, const char* key) {
  if (!in.is_object()) return nullptr;
  const auto found = in.find(key);
  return found == in.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace leasehold::http
