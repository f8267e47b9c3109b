#include "broker/decide/memory/return_memory.hpp"

#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/succession.hpp"
#include "broker/decide/worker/worker_sleep.hpp"
#include "common/expects.hpp"

namespace leasehold {
namespace {

void release_weights(Decision& decision, LeaseRecord& record) {
  WeightsRegion* region = decision.state.weights.find(record.region);
  expects(region != nullptr && region->users > 0, "an engine lease uses a region");
  --region->users;
  record.region = RegionId{};
  if (region->users != 0) return;
  if (region->state == RegionState::Published) {
    decision.state.weights.retain(*region);
    record_region(decision, *region, name(region->state));
    if (region->unavailable || gives_weights_back(decision.state, record))
      close_region(decision, *region);
    return;
  }
  // The region was never published, or its descriptor was lost in a restart.
  if (region->state == RegionState::Loading) {
    move(*region, RegionState::Scrubbing);
    record_region(decision, *region, name(region->state));
  }
  if (region->state == RegionState::Scrubbing) decision.add(effect::ScrubRegion{region->id});
}

/// Frees extents that are Scrubbing: host memory is verified, device memory is held or released.
void return_extents(Decision& decision, const LeaseRecord& record,
                    std::span<const ExtentId> extents) {
  if (!decision.state.config.lends_device()) return verify_extents(decision, extents);
  const ExtentBook& book = decision.state.extents;
  return_to_device(decision, record, book.of_pool(MemoryPool::Kv, extents));
  verify_extents(decision, book.of_pool(MemoryPool::Swap, extents));
}

}  // namespace

void punch_extents(Decision& decision, std::span<const ExtentId> extents) {
  for (const MemoryPool pool : kMemoryPools) {
    if (decision.state.config.is_on_device(pool)) continue;
    std::vector<ExtentId> part = decision.state.extents.of_pool(pool, extents);
    if (!part.empty()) decision.add(effect::PunchExtents{std::move(part), pool});
  }
}

void verify_extents(Decision& decision, std::span<const ExtentId> extents, bool close_anyway) {
  for (const MemoryPool pool : kMemoryPools) {
    std::vector<ExtentId> part = decision.state.extents.of_pool(pool, extents);
    if (!part.empty()) decision.add(effect::VerifyExtents{std::move(part), close_anyway, pool});
  }
}

MemoryFate fate_of_empty(const State& state, ExtentId id) {
  const ExtentRecord& extent = *state.extents.find(id);
  if (extent.unavailable) return MemoryFate::FreedUnchecked;
  return state.config.is_on_device(extent.pool) ? MemoryFate::ReleasedByDriver
                                                : MemoryFate::VerifiedZero;
}

void close_region(Decision& decision, const WeightsRegion& region) {
  const RegionId id = region.id;
  record_region(decision, region, "Free");
  decision.add(effect::CloseRegion{id});
  decision.state.weights.remove(id);
}

void collect_memory(Decision& decision, LeaseRecord& record) {
  expects(record.is(LeaseState::Fenced), "memory is collected after the fence");
  if (record.scope == wire::LeaseScope::Engine) {
    if (record.region != RegionId{}) release_weights(decision, record);
    close_if_returned(decision, record);
    return;
  }
  record.is_unmapped = true;
  std::vector<ExtentId> scrubbed = record.extents;
  std::erase_if(scrubbed, [&decision](ExtentId extent) {
    return decision.state.extents.find(extent)->state == ExtentState::Retained;
  });
  // The worker may have mapped the grant after the punch, before it learned of the fence. Its
  // prefault then allocated pages again, which does not count as a write after the fence.
  if (record.fenced_during_grant || record.may_be_mapping) punch_extents(decision, scrubbed);
  return_extents(decision, record, scrubbed);
  close_if_returned(decision, record);
  continue_succession(decision, record);
}

void scrub_returned(Decision& decision, LeaseRecord& record, std::span<const ExtentId> extents) {
  const std::vector<ExtentId> given(extents.begin(), extents.end());
  for (const ExtentId extent : given) {
    decision.state.extents.move(extent, ExtentState::Scrubbing);
    record_extent(decision, extent, &record);
  }
  punch_extents(decision, given);
  return_extents(decision, record, given);
}

void close_if_returned(Decision& decision, LeaseRecord& record) {
  if (!record.is(LeaseState::Fenced) || !record.extents.empty() || record.memory_returned) return;
  const bool all_empty = record.quarantined_extents == 0;
  // The time for which memory was retained is not a latency.
  if (all_empty && record.retained_until == TimePoint{}) {
    note_latency(decision, record, RevokeClock::Reuse, decision.now - record.revoked_at());
  }
  decision.state.requests.release(record.request, record.id());
  decision.state.leases.close(record);
  if (record.scope != wire::LeaseScope::Engine)
    decision.touched.closed.push_back({record.id(), record.tenant});
  decision.touch(record.id());
  const Worker* worker = decision.state.workers.find(record.worker());
  if (worker == nullptr || worker->state == WorkerState::Gone) {
    decision.touch(record.worker());  // the worker's row is removed with its last lease
  }
}

}  // namespace leasehold
