/// Counts from the broker's records, by code of its own, whether reserves are kept.
#pragma once

#include <span>

#include "broker/books/state.hpp"
#include "broker/decide/effect.hpp"
#include "broker/decide/event.hpp"

namespace leasehold::simulation {

/// After a decision: free memory, memory of scavengers and memory on its way back cover every
/// unused reserve. Quarantined and held memory counts as well: no tenant took it.
void check_reserves(const State& state);

/// A guaranteed tenant whose reserve covers its acquire is refused for lack of memory only while
/// memory is on its way, and the answer says when to retry. Does nothing for other events, for
/// memory of a card, which may be held for another worker, and while memory is quarantined.
void check_refusal(const State& state, const Event& event, std::span<const Effect> effects);

/// A lease has at most one live replacement, one that is charged to its replacement has a live one,
/// and that one is not being replaced itself: so a tenant pays for at least half of what it holds.
void check_replacements(const State& state);

/// No engine lease of a sleeping worker is live.
void check_sleepers(const State& state);

/// After an `adapter.open` that was not refused: the owner's adapters are within its quota, and
/// those shared by all within the worker's limit.
void check_adapter_quotas(const State& state, const Event& event, std::span<const Effect> effects);

/// No tenant holds more of the swap pool than a tenant alone may take.
void check_swap_shares(const State& state);

}  // namespace leasehold::simulation
