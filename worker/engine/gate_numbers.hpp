/// Numbers that identify gate sets. A gate caches the result of its last poll for the set with the
/// same number, so no two gate sets of a process may have the same number.
#pragma once

#include <atomic>
#include <cstdint>

namespace leasehold {

/// Returns the number of a gate set outside the steps: a load of weights, a transfer, a move. Steps
/// are numbered from 1 and never reach these numbers. Callable from any thread.
inline std::uint64_t next_gate_number() {
  static constinit std::atomic<std::uint64_t> next{std::uint64_t{1} << 63};
  return next.fetch_add(1, std::memory_order_relaxed);  // uniqueness needs no ordering
}

}  // namespace leasehold
