#include "broker/decide/memory/return_memory.hpp"

#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/revoke.hpp"

namespace leasehold {
namespace {

std::string name_of(ExtentId extent) {
  return fmt::format("extent:{}", extent.value);
}

std::string name_of(RegionId region) {
  return fmt::format("region:{}", region.value);
}

/// Handles a worker that wrote to memory after its fence: revokes all its leases and grants it no
/// more. A quiet segment or the worker's exit fences them.
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

/// True if no process maps the memory, so that closing the broker's descriptor frees it.
bool last_worker_is_gone(const State& state, const Quarantine& quarantine) {
  // The earlier broker did not record the worker.
  if (quarantine.worker == AttachmentId{}) return false;
  const Worker* worker = state.workers.find(quarantine.worker);
  return worker == nullptr || worker->state == WorkerState::Gone;
}

void record_release(Decision& decision, const std::string& object,
                    const PendingRelease& pending_release, bool done) {
  record_operator_action(decision, {.uid = pending_release.uid,
                                    .action = "quarantine_release",
                                    .object = object,
                                    .reason = pending_release.reason,
                                    .done = done});
}

void refuse_release(Decision& decision, const std::string& object, Quarantine& quarantine,
                    const std::string& why) {
  const PendingRelease pending_release = *std::exchange(quarantine.pending_release, std::nullopt);
  record_release(decision, object, pending_release, false);
  decision.reply(pending_release.call, fail(Errc::StillWritable, object + why));
}

void refuse_written(Decision& decision, const std::string& object, Quarantine& quarantine,
                    std::uint64_t allocated_bytes) {
  quarantine.allocated_bytes = allocated_bytes;
  refuse_release(decision, object, quarantine,
                 fmt::format(" holds {} bytes after another punch: worker {} still writes to it; "
                             "end that worker, then release it again",
                             allocated_bytes, quarantine.worker_name));
}

/// Refuses a release of memory without a descriptor: the broker can neither punch nor verify it.
/// Only the exit of the worker that maps the memory frees it.
void refuse_unavailable(Decision& decision, const std::string& object, Quarantine& quarantine) {
  const bool known = quarantine.worker != AttachmentId{};
  const std::string advice =
      known ? fmt::format("worker {} may map it; end that worker, then release it again",
                          quarantine.worker_name)
            : "its worker is not recorded; restart the machine to free it";
  refuse_release(decision, object, quarantine,
                 " was quarantined before this broker started and cannot be verified: " + advice);
}

void accept_release(Decision& decision, const std::string& object,
                    const PendingRelease& pending_release, std::uint64_t size_bytes) {
  record_release(decision, object, pending_release, true);
  decision.touched.durable = true;
  decision.add(effect::ReplyWhenJournaled{
      pending_release.call, Answer{wire::QuarantineReleased{.size_bytes = size_bytes}}});
}

Error not_quarantined(const std::string& object, std::string_view state) {
  return {Errc::IllegalTransition,
          fmt::format("{} is {}, not Quarantined; see `brokerctl quarantine list`", object, state)};
}

/// Notes the release in the quarantine record. A journal of an older schema may have no such
/// record; it is then created empty.
Result<void> begin_release(std::optional<Quarantine>& quarantine, const Caller& caller,
                           const wire::QuarantineRelease& release) {
  if (!quarantine) quarantine.emplace();
  if (quarantine->pending_release) {
    return fail(Errc::IllegalTransition, "a release of it is already in progress; retry");
  }
  quarantine->pending_release =
      PendingRelease{.call = caller.call, .uid = caller.uid, .reason = release.reason};
  return {};
}

CallResult release_extent(Decision& decision, const Caller& caller,
                          const wire::QuarantineRelease& release) {
  ExtentRecord* record = decision.state.extents.find(*release.extent);
  const std::string object = name_of(*release.extent);
  if (record == nullptr)
    return fail(Errc::UnknownLease, object + " is not in use; see `brokerctl quarantine list`");
  if (record->state != ExtentState::Quarantined) {
    return std::unexpected(not_quarantined(object, name(record->state)));
  }
  TRY(begin_release(record->quarantine, caller, release));
  const bool gone = last_worker_is_gone(decision.state, *record->quarantine);
  if (record->unavailable && !gone) {
    refuse_unavailable(decision, object, *record->quarantine);
    return std::nullopt;
  }
  const std::vector released{*release.extent};
  punch_extents(decision, released);
  verify_extents(decision, released, gone);
  return std::nullopt;
}

CallResult release_region(Decision& decision, const Caller& caller,
                          const wire::QuarantineRelease& release) {
  WeightsRegion* region = decision.state.weights.find(*release.region);
  const std::string object = name_of(*release.region);
  if (region == nullptr)
    return fail(Errc::UnknownLease, object + " is not in use; see `brokerctl quarantine list`");
  if (region->state != RegionState::Quarantined) {
    return std::unexpected(not_quarantined(object, name(region->state)));
  }
  TRY(begin_release(region->quarantine, caller, release));
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
        "extent quarantined: the device did not report it free extent={} worker={} bytes={}",
        extent.value, quarantine.worker_name, quarantine.allocated_bytes));
  }
  decision.warn(fmt::format(
      "extent quarantined: worker wrote to it after the fence extent={} lease={} worker={} "
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
      "weights region quarantined: worker wrote to it after the fence region={} worker={} "
      "allocated_bytes={} reason=worker_untrusted",
      region.id.value, quarantine.worker_name, quarantine.allocated_bytes));
  mark_untrusted(decision, quarantine.worker, {.what = "weights", .index = region.id.value});
}

void finish_release(Decision& decision, const ExtentsVerified::Entry& verified) {
  ExtentBook& extents = decision.state.extents;
  Quarantine& quarantine = *extents.find(verified.extent)->quarantine;
  if (!quarantine.pending_release) return;
  const std::string object = name_of(verified.extent);
  if (!verified.closed) {
    if (!last_worker_is_gone(decision.state, quarantine)) {
      return refuse_written(decision, object, quarantine, verified.allocated_bytes);
    }
    // The worker has exited meanwhile.
    return verify_extents(decision, std::vector{verified.extent}, true);
  }
  const PendingRelease pending_release = *quarantine.pending_release;
  extents.move(verified.extent, ExtentState::Scrubbing);
  record_extent(decision, verified.extent, nullptr);
  extents.free(verified.extent, verified.allocated_bytes == 0
                                    ? fate_of_empty(decision.state, verified.extent)
                                    : MemoryFate::FreedUnchecked);
  record_extent(decision, verified.extent, nullptr);
  accept_release(decision, object, pending_release, extents.extent_size_bytes());
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
  accept_release(decision, object, pending_release, size_bytes);
}

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::QuarantineRelease& release) {
  return release.extent ? release_extent(decision, caller, release)
                        : release_region(decision, caller, release);
}

}  // namespace leasehold
