/// Replaces a live lease by a second one of the same holder, so that its requests move without a
/// gap.
///
///   old   Live ───────────────────── drains ─── no request left, or kReplaceGrace ──► Revoked
///   new          granted ─► mapped ──┘
///
/// The pair counts once against the quota and needs memory twice. Three rules bound that: a lease
/// is replaced once, its replacement is not replaced before the first one is fenced, and the old
/// lease ends.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// How long a replaced lease lives on.
inline constexpr Duration kReplaceGrace = std::chrono::seconds(2);

/// Drains the live lease that `record` replaces, if any. Called once `record` is mapped, or has the
/// memory of the lease that it replaces on another worker.
void drain_replaced(Decision& decision, LeaseRecord& record);

}  // namespace leasehold
