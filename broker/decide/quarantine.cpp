#include "broker/decide/quarantine.hpp"

#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/revoke.hpp"

namespace leasehold {
namespace {

std::string name_of(ExtentId extent) {
  return fmt::format("extent:{}", extent.value);
}

std::string name_of(RegionId region) {
  return fmt::format("region:{}", region.value);
}

/// What it was told to leave alone it wrote to: it keeps no lease and gets none, and the rest is
/// fenced by its line or its exit, as with a worker that was lost.
void mark_untrusted(Decision& decision, AttachmentId id, events::WorkerUntrusted event) {
  Worker* worker = decision.state.workers.find(id);
  if (worker != nullptr) event.worker = worker->name;
  decision.record(event);
  if (worker == nullptr || worker->state == WorkerState::Gone || worker->untrusted) return;
  worker->untrusted = true;
  move(*worker, WorkerState::Lost);
  decision.touch(worker->id);
  revoke_leases(decision, decision.state.leases.leases_on(id), RevokeReason::WorkerUntrusted);
}

/// With its last worker gone nobody maps it: what is allocated goes with the broker's descriptor.
bool last_worker_is_gone(const State& state, const Quarantine& quarantine) {
  if (quarantine.worker == AttachmentId{}) return false;  // from before a restart: nobody knows
  const Worker* worker = state.workers.find(quarantine.worker);
  return worker == nullptr || worker->state == WorkerState::Gone;
}

void record_operator_action(Decision& decision, const std::string& object,
                            const PendingRelease& pending_release, bool done) {
  decision.record(events::OperatorAction{.action = "quarantine_release",
                                         .object = object,
                                         .uid = pending_release.uid,
                                         .reason = pending_release.reason,
                                         .done = done});
  decision.record_operator_action({.uid = pending_release.uid,
                                   .action = "quarantine_release",
                                   .object = object,
                                   .reason = pending_release.reason,
                                   .done = done});
}

void refuse(Decision& decision, const std::string& object, Quarantine& quarantine,
            const std::string& why) {
  const PendingRelease pending_release = *std::exchange(quarantine.pending_release, std::nullopt);
  record_operator_action(decision, object, pending_release, false);
  decision.reply(pending_release.call, fail(Errc::StillWritable, object + why));
}

void refuse_written(Decision& decision, const std::string& object, Quarantine& quarantine,
                    std::uint64_t allocated_bytes) {
  quarantine.allocated_bytes = allocated_bytes;
  refuse(decision, object, quarantine,
         fmt::format(" holds {} bytes after another punch: worker {} still writes to it; end that "
                     "worker, then release_quarantine again",
                     allocated_bytes, quarantine.worker_name));
}

/// This broker can neither punch it nor see whether it is empty: only the end of who maps it
/// counts.
void refuse_unavailable(Decision& decision, const std::string& object, Quarantine& quarantine) {
  const bool known = quarantine.worker != AttachmentId{};
  const std::string advice =
      known ? fmt::format("worker {} may map it; end that worker, then release_quarantine again",
                          quarantine.worker_name)
            : "nobody knows who maps it; it is free when the machine was restarted";
  refuse(decision, object, quarantine,
         " was quarantined before this broker started, which cannot look into it: " + advice);
}

void grant(Decision& decision, const std::string& object, const PendingRelease& pending_release,
           std::uint64_t size_bytes) {
  record_operator_action(decision, object, pending_release, true);
  decision.touched.durable = true;
  decision.add(effect::ReplyWhenJournaled{
      pending_release.call, Answer{wire::QuarantineReleased{.size_bytes = size_bytes}}});
}

Error not_quarantined(const std::string& object, std::string_view state) {
  return {Errc::IllegalTransition,
          fmt::format("{} is {}, not Quarantined; see `brokerctl quarantine list`", object, state)};
}

/// Memory that was quarantined before this broker started has no more than its state.
Result<void> begin(std::optional<Quarantine>& quarantine, const Caller& caller,
                   const wire::QuarantineRelease& release) {
  if (!quarantine) quarantine.emplace();
  if (quarantine->pending_release) {
    return fail(Errc::IllegalTransition, "somebody clears it right now; look again in a moment");
  }
  quarantine->pending_release =
      PendingRelease{.call = caller.call, .uid = caller.uid, .reason = release.reason};
  return {};
}

CallResult release_extent(Decision& decision, const Caller& caller,
                          const wire::QuarantineRelease& release) {
  ExtentRecord* record = decision.state.extents.find(*release.extent);
  const std::string object = name_of(*release.extent);
  if (record == nullptr) return fail(Errc::UnknownLease, object + " is no memory in use");
  if (record->state != ExtentState::Quarantined) {
    return std::unexpected(not_quarantined(object, name(record->state)));
  }
  TRY(begin(record->quarantine, caller, release));
  const bool gone = last_worker_is_gone(decision.state, *record->quarantine);
  if (record->unavailable && !gone) {
    refuse_unavailable(decision, object, *record->quarantine);
    return std::nullopt;
  }
  decision.add(effect::PunchExtents{{*release.extent}});
  decision.add(effect::VerifyExtents{{*release.extent}, gone});
  return std::nullopt;
}

CallResult release_region(Decision& decision, const Caller& caller,
                          const wire::QuarantineRelease& release) {
  WeightsRegion* region = decision.state.weights.find(*release.region);
  const std::string object = name_of(*release.region);
  if (region == nullptr) return fail(Errc::UnknownLease, object + " is no memory in use");
  if (region->state != RegionState::Quarantined) {
    return std::unexpected(not_quarantined(object, name(region->state)));
  }
  TRY(begin(region->quarantine, caller, release));
  if (region->unavailable && !last_worker_is_gone(decision.state, *region->quarantine)) {
    refuse_unavailable(decision, object, *region->quarantine);
    return std::nullopt;
  }
  decision.add(effect::ScrubRegion{region->id});
  return std::nullopt;
}

}  // namespace

void quarantine_extent(Decision& decision, ExtentId extent, const Quarantine& quarantine) {
  decision.state.extents.move(extent, ExtentState::Quarantined);
  ExtentRecord& record = *decision.state.extents.find(extent);
  record.quarantine = quarantine;
  if (quarantine.why == QuarantineReason::NotReturned) {
    return decision.warn(fmt::format(
        "extent did not come back from the device, quarantined extent={} worker={} bytes={}",
        extent.value, quarantine.worker_name, quarantine.allocated_bytes));
  }
  decision.warn(fmt::format(
      "extent was touched after it was taken back, quarantined extent={} lease={} worker={} "
      "allocated_bytes={} reason=worker_untrusted",
      extent.value, to_string(record.lease), quarantine.worker_name, quarantine.allocated_bytes));
  mark_untrusted(decision, quarantine.worker,
                 {.what = "extent", .index = extent.value, .lease = to_string(record.lease)});
}

void quarantine_region(Decision& decision, WeightsRegion& region, const Quarantine& quarantine) {
  move(region, RegionState::Quarantined);
  region.quarantine = quarantine;
  record_region(decision, region, name(region.state));
  decision.warn(fmt::format(
      "weights region was touched after it was taken back, quarantined region={} worker={} "
      "allocated_bytes={} reason=worker_untrusted",
      region.id.value, quarantine.worker_name, quarantine.allocated_bytes));
  mark_untrusted(decision, quarantine.worker, {.what = "weights", .index = region.id.value});
}

void finish_release(Decision& decision, const ExtentsVerified::Entry& verified) {
  ExtentPool& extents = decision.state.extents;
  Quarantine& quarantine = *extents.find(verified.extent)->quarantine;
  if (!quarantine.pending_release) return;
  const std::string object = name_of(verified.extent);
  if (!verified.closed) {
    if (!last_worker_is_gone(decision.state, quarantine)) {
      return refuse_written(decision, object, quarantine, verified.allocated_bytes);
    }
    return decision.add(effect::VerifyExtents{{verified.extent}, true});  // it exited meanwhile
  }
  const PendingRelease pending_release = *quarantine.pending_release;
  extents.move(verified.extent, ExtentState::Scrubbing);
  record_extent(decision, verified.extent, nullptr);
  extents.move(verified.extent, ExtentState::Free);
  record_extent(decision, verified.extent, nullptr);
  grant(decision, object, pending_release, extents.extent_size_bytes());
}

void finish_release(Decision& decision, WeightsRegion& region, std::uint64_t allocated_bytes) {
  if (!region.quarantine->pending_release) return;
  const std::string object = name_of(region.id);
  if (allocated_bytes != 0 && !last_worker_is_gone(decision.state, *region.quarantine)) {
    return refuse_written(decision, object, *region.quarantine, allocated_bytes);
  }
  const PendingRelease pending_release = *region.quarantine->pending_release;
  const std::uint64_t size_bytes = region.size_bytes;
  record_region(decision, region, "Free");
  decision.add(effect::CloseRegion{region.id});
  decision.state.weights.remove(region.id);
  grant(decision, object, pending_release, size_bytes);
}

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::QuarantineRelease& release) {
  return release.extent ? release_extent(decision, caller, release)
                        : release_region(decision, caller, release);
}

}  // namespace leasehold
