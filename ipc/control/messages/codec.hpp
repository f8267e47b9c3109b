/// The bodies of Message<T>. Only the files of messages include this header.
///
/// To add a message T, declare it in a header of this folder and write in its source file:
///   - `describe(Is<T> auto& m, auto& fields)`, which names every field with its rule. Writer and
///     reader both call it. It must be in the namespace of T for argument-dependent lookup.
///   - `Result<void> validate(const T&)` when a rule covers several fields. It runs after reading.
///   - `template struct Message<T>;` at the end of the file.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "ipc/control/messages/common.hpp"
#include "ipc/control/messages/json_fields.hpp"

namespace leasehold::wire {

template <class T>
Json Message<T>::to_json() const {
  return to_field(static_cast<const T&>(*this));
}

template <class T>
Result<T> Message<T>::from_json(const Json& json) {
  T message = TRY(read_fields<T>(json));
  if constexpr (requires { validate(message); }) TRY(validate(message));
  return message;
}

/// Returns BadRequest unless exactly one of the fields is present.
inline Result<void> exactly_one(std::string_view names, std::initializer_list<bool> present) {
  const auto count = std::ranges::count(present, true);
  if (count == 1) return {};
  return fail(Errc::BadRequest, fmt::format("expected exactly one of {}, got {}", names, count));
}

}  // namespace leasehold::wire
