/// The groups of checks; `judge` runs them all. Each appends to `checks`.
#pragma once

#include "tools/checks/demo/checks.hpp"

namespace leasehold::demo {

/// Tokens and text: survivors as if nothing had happened, the rebound stream whole.
void check_texts(const Observation& seen, std::vector<Check>& checks);

/// Lease histories, proofs and clocks.
void check_leases(const Observation& seen, std::vector<Check>& checks);

/// The refusing launch site, the rebind, and the order in which things happened.
void check_events(const Observation& seen, std::vector<Check>& checks);

/// Bytes: zero where a lease was, and none lost or won in the pool.
void check_memory(const Observation& seen, std::vector<Check>& checks);

/// Every byte of the pool is in one of these states.
std::uint64_t sum_of_states(const wire::StatusView& status);

}  // namespace leasehold::demo
