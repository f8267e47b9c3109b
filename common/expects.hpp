/// Contract checks for our own code, always enabled. Never use them for input.
///
/// C++20-clean: kernels may include it.
#pragma once

#include <source_location>

namespace leasehold {

/// Prints the broken promise and its location, then aborts.
[[noreturn]] void contract_violated(const char* kind, const char* what, std::source_location where);

/// Checks a precondition, which the caller promised.
inline void expects(bool condition, const char* what,
                    std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    contract_violated("expects", what, where);
}

/// Checks a postcondition or invariant, which this code promises.
inline void ensures(bool condition, const char* what,
                    std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    contract_violated("ensures", what, where);
}

}  // namespace leasehold
