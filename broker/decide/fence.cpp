#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/take_back.hpp"
#include "broker/decide/unfence.hpp"

namespace leasehold {
namespace {

void note_quiet(LeaseRecord& record, TimePoint seen_at) {
  if (record.clocks.quiet_ns < 0) record.clocks.quiet_ns = (seen_at - record.revoked_at()).count();
}

/// Still zero: capacity again. Not zero: somebody touched it after its fence, and nobody gets it
/// until an operator has looked.
void settle_extent(Decision& decision, LeaseRecord& record,
                   const ExtentsVerified::Entry& verified) {
  std::erase(record.extents, verified.extent);
  if (verified.allocated_bytes == 0) {
    decision.state.extents.move(verified.extent, ExtentState::Free);
    return record_extent(decision, verified.extent, nullptr);
  }
  ++record.quarantined_extents;
  quarantine_extent(decision, verified.extent,
                    {.worker = record.worker(),
                     .worker_name = decision.state.workers.find(record.worker())->name,
                     .since = decision.now,
                     .allocated_bytes = verified.allocated_bytes});
  record_extent(decision, verified.extent, &record);
}

}  // namespace

void decide_event(Decision& decision, const WordsLowered& lowered) {
  for (const LeaseId lease : lowered.leases) {
    const auto found = decision.state.leases.find(lease);
    if (found && !(*found)->is(LeaseState::Live)) (*found)->flipped_at = lowered.at;
  }
}

void decide_event(Decision& decision, const QuietObserved& observed) {
  std::vector<ProvenLease> proven;
  for (const LaunchQuiet& proof : observed.proofs) {
    const auto found = decision.state.leases.find(proof.lease());
    if (!found || !(*found)->is(LeaseState::Revoked)) continue;  // fenced by other evidence
    note_quiet(**found, observed.seen_at == TimePoint{} ? decision.now : observed.seen_at);
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
    if (extent != nullptr && extent->quarantine) settle_clearing(decision, entry);
    extent = decision.state.extents.find(entry.extent);
    if (extent == nullptr || extent->state != ExtentState::Scrubbing) continue;
    LeaseRecord& record = decision.state.leases.at(extent->lease);
    settle_extent(decision, record, entry);
    close_if_returned(decision, record);
  }
}

}  // namespace leasehold
