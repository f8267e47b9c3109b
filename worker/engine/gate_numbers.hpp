/// The numbers by which gates tell gate sets apart. A gate keeps the answer of its last poll for
/// the set with the same number, so two sets of a process must not share one.
#pragma once

#include <atomic>
#include <cstdint>

namespace leasehold {

/// For a set that is not a step: a load of weights, a transfer, a move. Steps are numbered from 1,
/// far below. Any thread.
inline std::uint64_t next_gate_number() {
  static constinit std::atomic<std::uint64_t> next{std::uint64_t{1} << 63};
  return next.fetch_add(1, std::memory_order_relaxed);  // only unique
}

}  // namespace leasehold
