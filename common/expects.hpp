/// Contract checks for promises of our own code, always on. Never for input.
///
/// C++20-clean: kernels may include it.
#pragma once

#include <source_location>

namespace leasehold {

/// Prints what was promised and where, then aborts.
[[noreturn]] void contract_violated(const char* kind, const char* what, std::source_location where);

/// A precondition: the caller promised it.
inline void expects(bool condition, const char* what,
                    std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    contract_violated("expects", what, where);
}

/// A postcondition or invariant: this code promises it.
inline void ensures(bool condition, const char* what,
                    std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    contract_violated("ensures", what, where);
}

}  // namespace leasehold
