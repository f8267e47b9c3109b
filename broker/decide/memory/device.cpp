#include "broker/decide/memory/return_memory.hpp"

#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/fence.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/revoke.hpp"

namespace leasehold {
namespace {

bool is_gone(const State& state, AttachmentId id) {
  const Worker* worker = state.workers.find(id);
  return worker == nullptr || worker->state == WorkerState::Gone;
}

/// Holds the extent for its worker until that worker exits. An extent that could not be cleared is
/// held too, but never granted again.
void hold_extent(Decision& decision, ExtentId id, bool cleared) {
  ExtentRecord& extent = *decision.state.extents.find(id);
  const auto owner = decision.state.leases.find(extent.lease);
  const bool listed = owner && std::erase((*owner)->extents, id) != 0;
  if (listed) extent.lent_to = (*owner)->worker();
  extent.unavailable = extent.unavailable || !cleared;
  decision.state.extents.move(id, ExtentState::Held);
  record_extent(decision, id, listed ? *owner : nullptr);
  if (listed) close_if_returned(decision, **owner);
}

/// Frees an extent that no worker ever mapped.
void free_extent(Decision& decision, ExtentId id) {
  const auto owner = decision.state.leases.find(decision.state.extents.find(id)->lease);
  const bool listed = owner && std::erase((*owner)->extents, id) != 0;
  decision.state.extents.free(id, MemoryFate::NeverLent);
  record_extent(decision, id, nullptr);
  if (listed) close_if_returned(decision, **owner);
}

void finish_cleared(Decision& decision, const ExtentsCleared::Entry& entry) {
  const ExtentRecord* extent = decision.state.extents.find(entry.extent);
  if (extent == nullptr || extent->state != ExtentState::Scrubbing) return;
  const LeaseRecord* owner = decision.state.leases.find_open(extent->lease);
  // If the worker has exited meanwhile, the extent is already being released.
  if (is_gone(decision.state, owner != nullptr ? owner->worker() : extent->lent_to)) return;
  if (entry.never_sent) return free_extent(decision, entry.extent);
  hold_extent(decision, entry.extent, !entry.refused);
}

/// Marks all weights regions unavailable: their handles belonged to the agent that ended.
void drop_device_regions(Decision& decision) {
  std::vector<RegionId> unused;
  for (const auto& [id, each] : decision.state.weights.regions()) {
    decision.state.weights.find(id)->unavailable = true;
    if (each.state == RegionState::Retained) unused.push_back(id);
  }
  for (const RegionId id : unused) close_region(decision, *decision.state.weights.find(id));
}

}  // namespace

Result<void> require_device(const State& state) {
  if (!state.device_lost) return {};
  return fail(Errc::PoolExhausted,
              fmt::format("the agent that allocates on {} has ended; retry once `brokerctl status` "
                          "shows the device ready",
                          state.config.device));
}

void return_to_device(Decision& decision, const LeaseRecord& record,
                      std::span<const ExtentId> extents) {
  const bool gone = is_gone(decision.state, record.worker());
  std::vector<ExtentId> held;
  std::vector<ExtentId> released;
  for (const ExtentId id : extents) {
    const ExtentRecord& extent = *decision.state.extents.find(id);
    const bool reached = extent.lent_to != AttachmentId{} || record.calls.grants_in_flight > 0;
    (reached && !gone ? held : released).push_back(id);
  }
  if (!held.empty()) decision.add(effect::ClearExtents{std::move(held)});
  if (!released.empty()) decision.add(effect::VerifyExtents{std::move(released)});
}

void release_held(Decision& decision, AttachmentId worker) {
  std::vector<ExtentId> released = decision.state.extents.held_by(worker);
  if (released.empty()) return;
  for (const ExtentId id : released) {
    decision.state.extents.move(id, ExtentState::Scrubbing);
    record_extent(decision, id, nullptr);
  }
  decision.add(effect::VerifyExtents{std::move(released)});
}

void decide_event(Decision& decision, const ExtentsCleared& cleared) {
  const Error* why = nullptr;
  std::size_t refused = 0;
  for (const ExtentsCleared::Entry& entry : cleared.entries) {
    finish_cleared(decision, entry);
    if (!entry.refused) continue;
    why = &*entry.refused;
    ++refused;
  }
  if (why == nullptr) return;
  decision.warn(
      fmt::format("device memory was not cleared; it stays held until its worker exits "
                  "extents={} error={} detail=\"{}\"",
                  refused, name(why->code), why->detail));
}

void decide_event(Decision& decision, const SettleAnswered& answered) {
  const auto found = decision.state.leases.find(answered.lease);
  if (!found || !(*found)->is(LeaseState::Revoked)) return;  // fenced by other evidence
  if (!answered.proof) {
    return decision.warn(fmt::format(
        "worker did not confirm that its launches are over lease={} error={}",
        to_string(answered.lease), answered.refused ? name(answered.refused->code) : "none"));
  }
  LeaseRecord& record = **found;
  note_latency(decision, record, RevokeClock::Quiet, decision.now - record.revoked_at());
  fence_all(decision, std::vector<ProvenLease>{{answered.lease, *answered.proof}});
}

/// The broker revokes every lease and keeps running. Workers keep what they imported until they
/// exit.
void decide_event(Decision& decision, const DeviceLost& lost) {
  State& state = decision.state;
  state.device_lost = true;
  ++state.counts.device_losses;
  revoke_leases(decision, state.leases.open_leases(), RevokeReason::DeviceFault);
  for (const auto& [id, extent] : state.extents.records()) {
    if (state.config.is_on_device(extent.pool)) state.extents.mark_unavailable(id);
  }
  drop_device_regions(decision);
  decision.warn(fmt::format("the device agent ended device={} losses={} reason=\"{}\"",
                            state.config.device, state.counts.device_losses, lost.why));
}

void decide_event(Decision& decision, const DeviceRecovered&) {
  decision.state.device_lost = false;
  decision.warn(fmt::format("another device agent serves device={}", decision.state.config.device));
}

}  // namespace leasehold
