/// Published texts: leases of scope Shared, which belong to no tenant and have no deadline.
#pragma once

#include "broker/decide/deciders.hpp"

namespace leasehold {

/// Sends the text to the worker, which has mapped the first extents. `call` is answered after the
/// fill. Precondition: the lease is Live and shared, and was not filled.
void start_fill(Decision& decision, LeaseRecord& record, CallId call);

/// Grows the lease when the worker asks for it during the fill. Errors: PermissionDenied after the
/// fill and for swap; QuotaBlocks, PoolExhausted.
CallResult grow_shared(Decision& decision, const Caller& caller, LeaseRecord& record,
                       const wire::LeaseGrow& grow);

inline constexpr std::size_t kMaxLostTexts = 64;  ///< A text has at most 128 KiB.

/// Keeps the text if the lease ended because of its worker. Precondition: the lease is Revoked.
void keep_lost_text(State& state, const LeaseRecord& record);

/// Publishes each lost text again if a worker of the same name and model is ready and has room.
/// Call it after each event. A text that cannot be published again is dropped with a warning.
void publish_lost_texts(Decision& decision);

/// Ends the texts of versions of adapters that no request uses any more. Call it after each event.
void end_outdated_texts(Decision& decision);

/// The same after a restart, which may end the lease of a version, or find that the earlier broker
/// has ended it without its texts.
void end_all_outdated_texts(Decision& decision);

}  // namespace leasehold
