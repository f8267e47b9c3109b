#include "ipc/segment/gate_set.hpp"

#include <bit>

namespace leasehold {

bool GateSet::first_refusal(const std::vector<LeaseDependency>& leases,
                            GateRefusal& refusal) const {
  for (const LeaseDependency& lease : leases) {
    // seq_cst: the counter of stored words was read before this load, so this load sees every store
    // that the count includes.
    const LeaseWord seen{lease.word->load(std::memory_order_seq_cst)};
    if (seen == lease.granted) continue;
    refusal.slot = lease.slot;
    refusal.granted = lease.granted;
    refusal.seen = seen;
    return true;
  }
  return false;
}

bool GateSet::sequence_refused(std::uint32_t index, GateRefusal& refusal) const {
  refusal.sequence = index;
  if (first_refusal(sequences_[index].leases, refusal)) return true;
  refusal.local = stops_->read(sequences_[index].stop_slot);
  return refusal.local != LocalStop::None;
}

SequenceMask GateSet::recheck(SequenceMask live, LaunchSite site, std::uint16_t layer) const {
  // Sequences come first: when a tenant's lease and the engine's are revoked together, the tenant's
  // request ends with the tenant's own reason.
  SequenceMask remaining = live;
  for (SequenceMask todo = live; todo != 0; todo &= todo - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(todo));
    const SequenceMask bit = SequenceMask{1} << index;
    GateRefusal refusal{.site = site, .layer = layer};
    if (!sequence_refused(index, refusal)) continue;
    remaining &= ~bit;
    if ((reported_.fetch_or(bit) & bit) == 0) listener_->refused(refusal);
  }
  GateRefusal engine{.site = site, .layer = layer};
  if (!first_refusal(engine_, engine)) return remaining;
  if (!engine_reported_.exchange(true)) listener_->refused(engine);
  return 0;
}

}  // namespace leasehold
