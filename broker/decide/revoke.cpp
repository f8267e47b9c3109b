#include "broker/decide/revoke.hpp"

#include <fmt/format.h>

#include <map>

#include "broker/decide/device.hpp"
#include "common/expects.hpp"

namespace leasehold {
namespace {

using ChangesByWorker = std::map<AttachmentId, std::vector<effect::StoreWords::Flip>>;

void add_store_words(Decision& decision, ChangesByWorker flips) {
  for (auto& [worker, stored] : flips) {
    const WorkerId index = decision.state.workers.find(worker)->index;
    decision.add(effect::StoreWords{index, std::move(stored), decision.now});
  }
}

void answer_pending_calls(Decision& decision, LeaseRecord& record) {
  const auto revoked = require_live(record);
  for (const PendingGrant& grant : record.grants) {
    decision.reply(grant.call, std::unexpected(revoked.error()));
  }
  for (const CallId call : record.shrinks) {
    decision.reply(call, std::unexpected(revoked.error()));
  }
  if (record.open_call) decision.reply(*record.open_call, std::unexpected(revoked.error()));
  record.grants.clear();
  record.shrinks.clear();
  record.open_call.reset();
}

/// An acquire that came to nothing replaced nothing: the next one may.
void forget_replacement(Decision& decision, const LeaseRecord& record) {
  if (record.acquired || !record.replaces) return;
  const auto old = decision.state.leases.find(*record.replaces);
  if (!old) return;
  (*old)->replaced_by.reset();
  decision.touch((*old)->id());
}

void drain_extents(Decision& decision, const LeaseRecord& record) {
  for (const ExtentId extent : record.extents) {
    if (decision.state.extents.find(extent)->state != ExtentState::Owned) continue;
    decision.state.extents.move(extent, ExtentState::Draining);
    record_extent(decision, extent, &record);
  }
}

void scrub_fenced(Decision& decision, LeaseRecord& record) {
  std::vector<ExtentId> punched;
  for (const ExtentId extent : record.extents) {
    if (decision.state.extents.find(extent)->state != ExtentState::Draining) continue;
    decision.state.extents.move(extent, ExtentState::Scrubbing);
    record_extent(decision, extent, &record);
    punched.push_back(extent);
  }
  if (punched.empty() || decision.state.config.lends_device()) return;  // no hole in device memory
  decision.add(effect::PunchExtents{std::move(punched)});
}

/// After the fence: the worker lets go, or there is nothing it could hold.
void ask_for_memory(Decision& decision, LeaseRecord& record, bool never_mapped) {
  const Worker& worker = *decision.state.workers.find(record.worker());
  if (never_mapped || worker.state == WorkerState::Gone) {
    collect_memory(decision, record);
  } else if (worker.socket_open && !worker.resuming) {
    decision.add(effect::SendUnmap{worker.id, record.id()});
  }  // else: asked when all is delivered, and punched; or lost: only its exit says that it let go
}

void release_weights(Decision& decision, LeaseRecord& record) {
  WeightsRegion* region = decision.state.weights.find(record.region);
  expects(region != nullptr && region->users > 0, "an engine lease uses a region");
  --region->users;
  record.region = RegionId{};
  if (region->users != 0) return;
  if (region->state == RegionState::Published) {
    decision.state.weights.retain(*region);
    record_region(decision, *region, name(region->state));
    if (region->unavailable) close_region(decision, *region);
    return;
  }
  // Never published, or lost with a broker before this one.
  if (region->state == RegionState::Loading) {
    move(*region, RegionState::Scrubbing);
    record_region(decision, *region, name(region->state));
  }
  if (region->state == RegionState::Scrubbing) decision.add(effect::ScrubRegion{region->id});
}

}  // namespace

void close_region(Decision& decision, const WeightsRegion& region) {
  const RegionId id = region.id;
  record_region(decision, region, "Free");
  decision.add(effect::CloseRegion{id});
  decision.state.weights.remove(id);
}

/// One snapshot per worker and scope serves all leases revoked together.
void add_quiet_watches(Decision& decision, std::span<const LeaseId> leases) {
  std::map<std::pair<AttachmentId, Touches>, std::vector<LeaseId>> watches;
  for (const LeaseId id : leases) {
    const LeaseRecord& record = decision.state.leases.at(id);
    const bool tenant = record.scope == wire::LeaseScope::Tenant;
    const Touches scope = tenant ? Touches::TenantMemory : Touches::WeightsAndScratch;
    watches[{record.worker(), scope}].push_back(id);
  }
  for (auto& [key, waiting] : watches) {
    const Worker& worker = *decision.state.workers.find(key.first);
    if (worker.state == WorkerState::Gone || worker.segment_lost) continue;
    decision.add(effect::BeginQuietWatch{key.first, key.second, std::move(waiting)});
  }
}

std::vector<LeaseId> revoke_leases(Decision& decision, std::span<const LeaseId> leases,
                                   RevokeReason reason) {
  std::vector<LeaseId> revoked;
  ChangesByWorker flips;
  for (const LeaseId id : leases) {
    LeaseRecord& record = decision.state.leases.at(id);
    auto* live = std::get_if<Lease<Live>>(&record.lease);
    if (live == nullptr) continue;
    flips[record.worker()].push_back({id, LeaseState::Revoked, reason});
    record.lease = revoke(std::move(*live), reason, decision.now);
    revoked.push_back(id);
  }
  add_store_words(decision, std::move(flips));  // before anything else
  add_quiet_watches(decision, revoked);
  for (const LeaseId id : revoked) {
    LeaseRecord& record = decision.state.leases.at(id);
    record_lease(decision, record);
    drain_extents(decision, record);
    answer_pending_calls(decision, record);
    forget_replacement(decision, record);
  }
  return revoked;
}

void fence_all(Decision& decision, std::span<const ProvenLease> leases) {
  ChangesByWorker flips;
  std::vector<const ProvenLease*> fenced;
  for (const ProvenLease& proven : leases) {
    LeaseRecord& record = decision.state.leases.at(proven.lease);
    auto* revoked = std::get_if<Lease<Revoked>>(&record.lease);
    if (revoked == nullptr) continue;
    const RevokeReason reason = revoked->state().reason;
    flips[record.worker()].push_back({proven.lease, LeaseState::Fenced, reason});
    record.lease = fence(std::move(*revoked), proven.proof, decision.now);
    fenced.push_back(&proven);
  }
  add_store_words(decision, std::move(flips));
  for (const ProvenLease* proven : fenced) {
    LeaseRecord& record = decision.state.leases.at(proven->lease);
    ++decision.state.leases_fenced;
    record.fenced_during_grant = record.grants_in_flight > 0;
    record_lease(decision, record);
    scrub_fenced(decision, record);
    ask_for_memory(decision, record, std::holds_alternative<NeverMapped>(proven->proof));
  }
}

void collect_memory(Decision& decision, LeaseRecord& record) {
  expects(record.is(LeaseState::Fenced), "memory is collected after the fence");
  if (record.scope == wire::LeaseScope::Engine) {
    if (record.region != RegionId{}) release_weights(decision, record);
    close_if_returned(decision, record);
    return;
  }
  if (decision.state.config.lends_device()) {
    return_to_device(decision, record, record.extents);
    return close_if_returned(decision, record);
  }
  // The worker mapped a grant after the punch and only then heard of the fence: what it brought
  // back by doing so is no sign of mischief.
  if (record.fenced_during_grant) decision.add(effect::PunchExtents{record.extents});
  if (!record.extents.empty()) decision.add(effect::VerifyExtents{record.extents});
  close_if_returned(decision, record);
}

void scrub_returned(Decision& decision, LeaseRecord& record, std::span<const ExtentId> extents) {
  const std::vector<ExtentId> given(extents.begin(), extents.end());
  for (const ExtentId extent : given) {
    decision.state.extents.move(extent, ExtentState::Scrubbing);
    record_extent(decision, extent, &record);
  }
  if (decision.state.config.lends_device()) return return_to_device(decision, record, given);
  decision.add(effect::PunchExtents{given});
  decision.add(effect::VerifyExtents{given});
}

void close_if_returned(Decision& decision, LeaseRecord& record) {
  if (!record.is(LeaseState::Fenced) || !record.extents.empty() || record.memory_returned) return;
  const bool all_empty = record.quarantined_extents == 0;
  if (all_empty) record.clocks.reuse_ns = (decision.now - record.revoked_at()).count();
  decision.state.requests.release(record.request, record.id());
  decision.state.leases.close(record);
  decision.touch(record.id());
  const Worker* worker = decision.state.workers.find(record.worker());
  if (worker == nullptr || worker->state == WorkerState::Gone) {
    decision.touch(record.worker());  // its row goes with its last lease
  }
}

void record_lease(Decision& decision, const LeaseRecord& record) {
  decision.touch(record.id());
  const auto* fenced = std::get_if<Lease<Fenced>>(&record.lease);
  decision.record(events::LeaseStateChanged{
      .lease = record.id(),
      .state = record.state(),
      .reason = reason_of(record.lease),
      .tenant = record.tenant.value,
      .proof = fenced ? std::string(name(fenced->state().proof)) : std::string()});
}

void record_extent(Decision& decision, ExtentId extent, const LeaseRecord* owner) {
  decision.touch(extent);
  const ExtentRecord* found = decision.state.extents.find(extent);
  const ExtentState state = found ? found->state : ExtentState::Free;
  decision.record(events::RegionStateChanged{.region = extent.value,
                                             .kind = "extent",
                                             .state = std::string(name(state)),
                                             .lease = owner ? to_string(owner->id()) : ""});
}

void record_region(Decision& decision, const WeightsRegion& region, std::string_view state) {
  decision.touch(region.id);
  decision.record(events::RegionStateChanged{
      .region = region.id.value, .kind = "weights", .state = std::string(state), .lease = ""});
}

Result<void> require_live(const LeaseRecord& record) {
  if (record.is(LeaseState::Live)) return {};
  const Errc code = record.is(LeaseState::Revoked) ? Errc::LeaseRevoked : Errc::LeaseFenced;
  return fail(code, fmt::format("lease {} was taken back ({}); acquire another",
                                to_string(record.id()), name(reason_of(record.lease))));
}

}  // namespace leasehold
