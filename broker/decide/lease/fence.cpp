#include "broker/decide/lease/fence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/return_memory.hpp"

namespace leasehold {
namespace {

/// Frees an extent with no allocated bytes. Allocated bytes mean that a worker wrote after the
/// fence or, on a device, that the driver did not report the memory free. Such an extent is
/// quarantined until an operator releases it.
void finish_extent(Decision& decision, LeaseRecord* record,
                   const ExtentsVerified::Entry& verified) {
  if (record != nullptr) std::erase(record->extents, verified.extent);
  if (verified.allocated_bytes == 0) {
    decision.state.extents.free(verified.extent, fate_of_empty(decision.state, verified.extent));
    return record_extent(decision, verified.extent, nullptr);
  }
  if (record != nullptr) ++record->quarantined_extents;
  const ExtentRecord& extent = *decision.state.extents.find(verified.extent);
  const AttachmentId holder = record != nullptr ? record->worker() : extent.lent_to;
  const Worker* worker = decision.state.workers.find(holder);
  const bool on_device = decision.state.config.is_on_device(extent.pool);
  quarantine_extent(decision, verified.extent,
                    {.worker = holder,
                     .worker_name = worker != nullptr ? worker->name : "",
                     .since = decision.now,
                     .allocated_bytes = verified.allocated_bytes,
                     .why = on_device ? QuarantineReason::NotReturned : QuarantineReason::Touched});
  record_extent(decision, verified.extent, record);
}

/// On a device, LaunchQuiet proves only that the worker launches no more kernels for the lease. The
/// worker's reply to `lease.settle` confirms that the earlier launches have finished.
void ask_to_settle(Decision& decision, std::span<const LaunchQuiet> quiet) {
  for (const LaunchQuiet& seen : quiet) {
    const LeaseRecord* record = decision.state.leases.find_open(seen.lease());
    if (record == nullptr || !record->is(LeaseState::Revoked)) continue;
    if (!decision.state.workers.find(record->worker())->socket_open) continue;
    decision.add(effect::SendSettle{record->worker(), record->id()});
  }
}

/// Retains the KV extents if a later lease may adopt them, and starts to scrub all others.
void scrub_fenced(Decision& decision, LeaseRecord& record) {
  const bool retains = retains_memory(decision, record);
  std::vector<ExtentId> to_punch;
  for (const ExtentId id : record.extents) {
    const ExtentRecord& extent = *decision.state.extents.find(id);
    if (extent.state != ExtentState::Draining) continue;
    const bool is_retained = retains && extent.pool == MemoryPool::Kv;
    decision.state.extents.move(id, is_retained ? ExtentState::Retained : ExtentState::Scrubbing);
    record_extent(decision, id, &record);
    if (!is_retained) to_punch.push_back(id);
  }
  const bool any_retained = std::ranges::any_of(record.extents, [&decision](ExtentId id) {
    return decision.state.extents.find(id)->state == ExtentState::Retained;
  });
  if (any_retained) start_retention(decision, record);
  punch_extents(decision, to_punch);
}

/// Starts to reclaim the memory of a fenced lease: asks the worker to unmap it, or collects it at
/// once if no process maps it.
void ask_for_memory(Decision& decision, LeaseRecord& record, bool never_mapped) {
  const Worker& worker = *decision.state.workers.find(record.worker());
  if (never_mapped || worker.state == WorkerState::Gone) {
    collect_memory(decision, record);
  } else if (worker.socket_open && !worker.resuming) {
    decision.add(effect::SendUnmap{worker.id, record.id()});
  }
  // A resuming worker is asked to unmap after it has redelivered its memory. A worker without a
  // connection returns the memory when it exits.
}

/// Fences leases that were revoked before their descriptors were sent: their worker has nothing to
/// settle or unmap.
void fence_never_mapped(Decision& decision, std::span<const LaunchQuiet> quiet) {
  for (const LaunchQuiet& seen : quiet) {
    const auto found = decision.state.leases.find(seen.lease());
    if (found) fence_if_never_mapped(decision, **found);
  }
}

}  // namespace

void fence_all(Decision& decision, std::span<const ProvenLease> leases) {
  ChangesByWorker changes;
  std::vector<const ProvenLease*> fenced;
  for (const ProvenLease& proven : leases) {
    LeaseRecord& record = decision.state.leases.at(proven.lease);
    auto* revoked = std::get_if<Lease<Revoked>>(&record.lease);
    if (revoked == nullptr) continue;
    const RevokeReason reason = revoked->state().reason;
    changes[record.worker()].push_back({proven.lease, LeaseState::Fenced, reason});
    record.lease = fence(std::move(*revoked), proven.proof, decision.now);
    fenced.push_back(&proven);
  }
  add_store_words(decision, std::move(changes));
  for (const ProvenLease* proven : fenced) {
    LeaseRecord& record = decision.state.leases.at(proven->lease);
    ++decision.state.counts.leases_fenced;
    record.fenced_during_grant = record.calls.grants_in_flight > 0;
    record_lease(decision, record);
    scrub_fenced(decision, record);
    ask_for_memory(decision, record, std::holds_alternative<NeverMapped>(proven->proof));
  }
}

void decide_event(Decision& decision, const WordsStored& stored) {
  for (const LeaseId lease : stored.leases) {
    const auto found = decision.state.leases.find(lease);
    if (found && !(*found)->is(LeaseState::Live)) (*found)->end.word_stored_at = stored.at;
  }
}

void decide_event(Decision& decision, const QuietObserved& observed) {
  fence_never_mapped(decision, observed.proofs);
  if (decision.state.config.lends_device()) return ask_to_settle(decision, observed.proofs);
  std::vector<ProvenLease> proven;
  for (const LaunchQuiet& proof : observed.proofs) {
    const auto found = decision.state.leases.find(proof.lease());
    if (!found || !(*found)->is(LeaseState::Revoked)) continue;  // fenced by another proof
    const TimePoint seen = observed.seen_at == TimePoint{} ? decision.now : observed.seen_at;
    note_latency(decision, **found, RevokeClock::Quiet, seen - (*found)->revoked_at());
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
    // Stays null for an extent that was held for a worker, because its lease is closed.
    LeaseRecord* record = nullptr;
    if (decision.state.leases.find_open(extent->lease) != nullptr) {
      record = &decision.state.leases.at(extent->lease);
    }
    finish_extent(decision, record, entry);
    if (record != nullptr) close_if_returned(decision, *record);
  }
}

}  // namespace leasehold
