#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/take_back.hpp"

namespace leasehold {
namespace {

void note_quiet(LeaseRecord& record, TimePoint now) {
  if (record.clocks.quiet_ns < 0) record.clocks.quiet_ns = (now - record.revoked_at()).count();
}

/// Still zero: capacity again. Not zero: somebody touched it after its fence, and nobody gets it
/// until an operator has looked.
void settle_extent(Decision& decision, LeaseRecord& record,
                   const ExtentsVerified::Entry& verified) {
  const bool zero = verified.allocated_bytes == 0;
  decision.state.extents.move(verified.extent, zero ? ExtentState::Free : ExtentState::Quarantined);
  record_extent(decision, verified.extent, zero ? nullptr : &record);
  std::erase(record.extents, verified.extent);
  if (zero) return;
  const Worker& worker = *decision.state.workers.find(record.worker());
  decision.warn(fmt::format(
      "extent was touched after it was taken back, quarantined extent={} "
      "lease={} worker={} allocated_bytes={} reason=worker_untrusted",
      verified.extent.value, to_string(record.id()), worker.name, verified.allocated_bytes));
}

}  // namespace

void decide_event(Decision& decision, const QuietObserved& observed) {
  std::vector<ProvenLease> proven;
  for (const LaunchQuiet& proof : observed.proofs) {
    const auto found = decision.state.leases.find(proof.lease());
    if (!found || !(*found)->is(LeaseState::Revoked)) continue;  // fenced by other evidence
    note_quiet(**found, decision.now);
    proven.push_back({proof.lease(), proof});
  }
  fence_all(decision, proven);
}

void decide_event(Decision& decision, const UnmapAnswered& answered) {
  const auto found = decision.state.leases.find(answered.lease);
  if (!found || !(*found)->is(LeaseState::Fenced) || (*found)->memory_returned) return;
  if (!answered.refused) return collect_memory(decision, **found);
  decision.warn(fmt::format("worker did not unmap a fenced lease lease={} error={}",
                            to_string(answered.lease), name(answered.refused->code)));
}

void decide_event(Decision& decision, const ExtentsVerified& verified) {
  for (const ExtentsVerified::Entry& entry : verified.entries) {
    const ExtentRecord* extent = decision.state.extents.find(entry.extent);
    if (extent == nullptr || extent->state != ExtentState::Scrubbing) continue;
    LeaseRecord& record = decision.state.leases.at(extent->lease);
    settle_extent(decision, record, entry);
    close_if_returned(decision, record);
  }
}

}  // namespace leasehold
