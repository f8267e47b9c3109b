/// The groups of checks that `judge` runs. Each function appends to `checks`.
#pragma once

#include <string>

#include "tests/checks/demo/checks.hpp"

namespace leasehold::demo {

/// Tokens and texts are equal to the undisturbed run, also for the tenant that rebinds.
void check_texts(const Observation& seen, std::vector<Check>& checks);

/// The same holds after the death of the worker, and its successor adopted the texts.
void check_recovery(const Observation& seen, std::vector<Check>& checks);

/// Answers of chats end properly and contain the expected words.
void check_answers(const Observation& seen, std::vector<Check>& checks);

/// States, reasons, proofs and clocks of the leases are right.
void check_leases(const Observation& seen, std::vector<Check>& checks);

/// Events show the refused launch, the rebind, and the order of the states.
void check_events(const Observation& seen, std::vector<Check>& checks);

/// Memory is zero after the lease, and the sum of bytes is constant.
void check_memory(const Observation& seen, std::vector<Check>& checks);

/// Returns the pools whose bytes in all states do not add up to their capacity: "kv: 8 of 16
/// bytes"; empty if there are none.
std::string not_conserved(const wire::StatusView& status);
/// True if all memory of both pools is free, or is device memory that is cleared and held until its
/// worker exits.
bool is_all_free(const wire::StatusView& status);

}  // namespace leasehold::demo
