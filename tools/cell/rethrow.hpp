/// The end of the agent's coroutines that run for ever: an exception is one of the program.
#pragma once

#include <exception>

namespace leasehold::cell {

inline constexpr auto kRethrow = [](const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
};

}  // namespace leasehold::cell
