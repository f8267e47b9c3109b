/// The value of a Result, in test code that has no other way to fail.
#pragma once

#include <stdexcept>
#include <type_traits>

#include "common/result.hpp"

namespace leasehold::testing {

/// Throws std::runtime_error with the error's detail.
template <class T>
T required(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().detail);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace leasehold::testing
