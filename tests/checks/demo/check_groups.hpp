/// The groups of checks that `judge` runs. Each appends to `checks`.
#pragma once

#include <string>

#include "tests/checks/demo/checks.hpp"

namespace leasehold::demo {

/// Tokens and texts: equal to the undisturbed run, also for the tenant that rebinds.
void check_texts(const Observation& seen, std::vector<Check>& checks);

/// The same after the death of the worker, and whether its successor adopted the texts.
void check_recovery(const Observation& seen, std::vector<Check>& checks);

/// Answers of chats: how they end, what they contain.
void check_answers(const Observation& seen, std::vector<Check>& checks);

/// States, reasons, proofs and clocks of the leases.
void check_leases(const Observation& seen, std::vector<Check>& checks);

/// Events: the refused launch, the rebind, and the order of the states.
void check_events(const Observation& seen, std::vector<Check>& checks);

/// Memory: zero after the lease, and a constant sum of bytes.
void check_memory(const Observation& seen, std::vector<Check>& checks);

/// The pools whose bytes in all states do not add up to their capacity: "kv: 8 of 16 bytes"; empty
/// when both do.
std::string not_conserved(const wire::StatusView& status);
/// All memory of both pools is free, or is a device's: cleared, and held for its worker until that
/// exits.
bool is_all_free(const wire::StatusView& status);

}  // namespace leasehold::demo
