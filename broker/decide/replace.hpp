/// Replaces a live lease by a new one of the same holder, so that its requests move without a gap.
///
///   old   Live ───────────────────── drains ─── no request left, or kReplaceGrace ──► Revoked
///   new          granted ─► mapped ──┘
///
/// The pair counts once against the quota but needs memory twice. Three rules limit this memory: a
/// lease is replaced at most once, its replacement cannot be replaced before the old lease is
/// fenced, and the old lease always ends.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// How long a replaced lease may drain before it is revoked.
inline constexpr Duration kReplaceGrace = std::chrono::seconds(2);

/// Drains the live lease that `record` replaces, if any. Call it once `record` is mapped; if
/// `record` is on another worker, once the handover has its memory.
void drain_replaced(Decision& decision, LeaseRecord& record);

}  // namespace leasehold
