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
void distrust(Decision& decision, AttachmentId id, events::WorkerUntrusted event) {
  Worker* worker = decision.state.workers.find(id);
  if (worker != nullptr) event.worker = worker->name;
  decision.record(event);
  if (worker == nullptr || worker->state == WorkerState::Gone || worker->untrusted) return;
  worker->untrusted = true;
  move(*worker, WorkerState::Lost);
  decision.touch(worker->id);
  take_back(decision, decision.state.leases.leases_on(id), RevokeReason::WorkerUntrusted);
}

/// With its last worker gone nobody maps it: what is allocated goes with the broker's descriptor.
bool last_worker_is_gone(const State& state, const Quarantine& quarantine) {
  if (quarantine.worker == AttachmentId{}) return false;  // from before a restart: nobody knows
  const Worker* worker = state.workers.find(quarantine.worker);
  return worker == nullptr || worker->state == WorkerState::Gone;
}

void record_deed(Decision& decision, const std::string& object, const Clearing& clearing,
                 bool done) {
  decision.record(events::OperatorAction{.action = "quarantine_release",
                                         .object = object,
                                         .uid = clearing.uid,
                                         .reason = clearing.reason,
                                         .done = done});
  decision.audit({.uid = clearing.uid,
                  .action = "quarantine_release",
                  .object = object,
                  .reason = clearing.reason,
                  .done = done});
}

void refuse(Decision& decision, const std::string& object, Quarantine& quarantine,
            const std::string& why) {
  const Clearing clearing = *std::exchange(quarantine.clearing, std::nullopt);
  record_deed(decision, object, clearing, false);
  decision.reply(clearing.call, fail(Errc::StillWritable, object + why));
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
void refuse_unseen(Decision& decision, const std::string& object, Quarantine& quarantine) {
  const bool known = quarantine.worker != AttachmentId{};
  const std::string what_to_do =
      known ? fmt::format("worker {} may map it; end that worker, then release_quarantine again",
                          quarantine.worker_name)
            : "nobody knows who maps it; it is free when the machine was restarted";
  refuse(decision, object, quarantine,
         " was quarantined before this broker started, which cannot look into it: " + what_to_do);
}

void grant(Decision& decision, const std::string& object, const Clearing& clearing,
           std::uint64_t size_bytes) {
  record_deed(decision, object, clearing, true);
  decision.touched.durable = true;
  decision.add(effect::ReplyWhenJournaled{
      clearing.call, Answer{wire::QuarantineReleased{.size_bytes = size_bytes}}});
}

Error not_quarantined(const std::string& object, std::string_view state) {
  return {Errc::IllegalTransition,
          fmt::format("{} is {}, not Quarantined; see `brokerctl quarantine list`", object, state)};
}

/// Memory that was quarantined before this broker started has no more than its state.
Result<void> begin(std::optional<Quarantine>& quarantine, const Caller& caller,
                   const wire::QuarantineRelease& clear) {
  if (!quarantine) quarantine.emplace();
  if (quarantine->clearing) {
    return fail(Errc::IllegalTransition, "somebody clears it right now; look again in a moment");
  }
  quarantine->clearing = Clearing{.call = caller.call, .uid = caller.uid, .reason = clear.reason};
  return {};
}

Outcome clear_extent(Decision& decision, const Caller& caller,
                     const wire::QuarantineRelease& clear) {
  ExtentRecord* record = decision.state.extents.find(*clear.extent);
  const std::string object = name_of(*clear.extent);
  if (record == nullptr) return fail(Errc::UnknownLease, object + " is no memory in use");
  if (record->state != ExtentState::Quarantined) {
    return std::unexpected(not_quarantined(object, name(record->state)));
  }
  TRY(begin(record->quarantine, caller, clear));
  const bool gone = last_worker_is_gone(decision.state, *record->quarantine);
  if (record->away && !gone) {
    refuse_unseen(decision, object, *record->quarantine);
    return std::nullopt;
  }
  decision.add(effect::PunchExtents{{*clear.extent}});
  decision.add(effect::VerifyExtents{{*clear.extent}, gone});
  return std::nullopt;
}

Outcome clear_region(Decision& decision, const Caller& caller,
                     const wire::QuarantineRelease& clear) {
  WeightsRegion* region = decision.state.weights.find(*clear.region);
  const std::string object = name_of(*clear.region);
  if (region == nullptr) return fail(Errc::UnknownLease, object + " is no memory in use");
  if (region->state != RegionState::Quarantined) {
    return std::unexpected(not_quarantined(object, name(region->state)));
  }
  TRY(begin(region->quarantine, caller, clear));
  if (region->away && !last_worker_is_gone(decision.state, *region->quarantine)) {
    refuse_unseen(decision, object, *region->quarantine);
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
  distrust(decision, quarantine.worker,
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
  distrust(decision, quarantine.worker, {.what = "weights", .index = region.id.value});
}

void settle_clearing(Decision& decision, const ExtentsVerified::Entry& verified) {
  ExtentPool& extents = decision.state.extents;
  Quarantine& quarantine = *extents.find(verified.extent)->quarantine;
  if (!quarantine.clearing) return;
  const std::string object = name_of(verified.extent);
  if (!verified.closed) {
    if (!last_worker_is_gone(decision.state, quarantine)) {
      return refuse_written(decision, object, quarantine, verified.allocated_bytes);
    }
    return decision.add(effect::VerifyExtents{{verified.extent}, true});  // it exited meanwhile
  }
  const Clearing clearing = *quarantine.clearing;
  extents.move(verified.extent, ExtentState::Scrubbing);
  record_extent(decision, verified.extent, nullptr);
  extents.move(verified.extent, ExtentState::Free);
  record_extent(decision, verified.extent, nullptr);
  grant(decision, object, clearing, extents.extent_size_bytes());
}

void settle_clearing(Decision& decision, WeightsRegion& region, std::uint64_t allocated_bytes) {
  if (!region.quarantine->clearing) return;
  const std::string object = name_of(region.id);
  if (allocated_bytes != 0 && !last_worker_is_gone(decision.state, *region.quarantine)) {
    return refuse_written(decision, object, *region.quarantine, allocated_bytes);
  }
  const Clearing clearing = *region.quarantine->clearing;
  const std::uint64_t size_bytes = region.size_bytes;
  record_region(decision, region, "Free");
  decision.add(effect::CloseRegion{region.id});
  decision.state.weights.remove(region.id);
  grant(decision, object, clearing, size_bytes);
}

Outcome decide_call(Decision& decision, const Caller& caller,
                    const wire::QuarantineRelease& clear) {
  return clear.extent ? clear_extent(decision, caller, clear)
                      : clear_region(decision, caller, clear);
}

}  // namespace leasehold
