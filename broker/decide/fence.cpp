#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/quarantine.hpp"
#include "broker/decide/revoke.hpp"

namespace leasehold {
namespace {

void note_quiet(LeaseRecord& record, TimePoint seen_at) {
  if (record.clocks.quiet_ns < 0) record.clocks.quiet_ns = (seen_at - record.revoked_at()).count();
}

/// Still zero: capacity again. Not zero: somebody touched it after its fence, and nobody gets it
/// until an operator has looked.
void finish_extent(Decision& decision, LeaseRecord* record,
                   const ExtentsVerified::Entry& verified) {
  if (record != nullptr) std::erase(record->extents, verified.extent);
  if (verified.allocated_bytes == 0) {
    decision.state.extents.move(verified.extent, ExtentState::Free);
    return record_extent(decision, verified.extent, nullptr);
  }
  if (record != nullptr) ++record->quarantined_extents;
  const AttachmentId holder =
      record != nullptr ? record->worker() : decision.state.extents.find(verified.extent)->lent_to;
  const Worker* worker = decision.state.workers.find(holder);
  const bool on_device = decision.state.config.lends_device();
  quarantine_extent(decision, verified.extent,
                    {.worker = holder,
                     .worker_name = worker != nullptr ? worker->name : "",
                     .since = decision.now,
                     .allocated_bytes = verified.allocated_bytes,
                     .why = on_device ? QuarantineReason::NotReturned : QuarantineReason::Touched});
  record_extent(decision, verified.extent, record);
}

/// On a device the line says only that nothing more is launched. What was launched is over when the
/// worker says so for this very lease, or has exited.
void ask_to_settle(Decision& decision, std::span<const LaunchQuiet> quiet) {
  for (const LaunchQuiet& seen : quiet) {
    const LeaseRecord* record = decision.state.leases.find_open(seen.lease());
    if (record == nullptr || !record->is(LeaseState::Revoked)) continue;
    if (!decision.state.workers.find(record->worker())->socket_open) continue;
    decision.add(effect::SendSettle{record->worker(), record->id()});
  }
}

}  // namespace

void decide_event(Decision& decision, const WordsStored& stored) {
  for (const LeaseId lease : stored.leases) {
    const auto found = decision.state.leases.find(lease);
    if (found && !(*found)->is(LeaseState::Live)) (*found)->flipped_at = stored.at;
  }
}

void decide_event(Decision& decision, const QuietObserved& observed) {
  if (decision.state.config.lends_device()) return ask_to_settle(decision, observed.proofs);
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
    if (extent != nullptr && extent->quarantine) finish_release(decision, entry);
    extent = decision.state.extents.find(entry.extent);
    if (extent == nullptr || extent->state != ExtentState::Scrubbing) continue;
    LeaseRecord* record = nullptr;  // none: it was held for a worker beyond its leases
    if (decision.state.leases.find_open(extent->lease) != nullptr) {
      record = &decision.state.leases.at(extent->lease);
    }
    finish_extent(decision, record, entry);
    if (record != nullptr) close_if_returned(decision, *record);
  }
}

}  // namespace leasehold
