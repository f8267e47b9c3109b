#include "broker/books/weights.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/return_memory.hpp"
#include "broker/decide/worker/unavailable.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxTextBytes = 256;

Result<Worker*> calling_worker(State& state, const Caller& caller) {
  Worker* worker = state.workers.find_by_connection(caller.connection);
  if (worker != nullptr && worker->state <= WorkerState::Ready) return worker;
  return fail(Errc::PermissionDenied, "call worker.attach first");
}

Result<void> check(const wire::WeightsOpen& open) {
  if (open.size_bytes == 0) return fail(Errc::BadRequest, "size_bytes is 0; it must be positive");
  const std::pair<std::string_view, std::size_t> texts[] = {
      {"model", open.model.size()},
      {"part", open.part.size()},
      {"layout_digest", open.layout_digest.size()}};
  for (const auto& [field, size_bytes] : texts) {
    if (size_bytes <= kMaxTextBytes) continue;
    return fail(Errc::BadRequest,
                fmt::format("{} has {} bytes; send at most {}", field, size_bytes, kMaxTextBytes));
  }
  return {};
}

LeaseRecord* engine_lease_on(State& state, const Worker& worker, RegionId region) {
  for (const LeaseId id : state.leases.index().of(worker.id).open) {
    LeaseRecord& record = state.leases.at(id);
    const bool engine = record.scope == wire::LeaseScope::Engine && record.region == region;
    if (engine && record.is(LeaseState::Live)) return &record;
  }
  return nullptr;
}

struct EngineLeases {
  std::uint32_t of_worker = 0;
  std::uint32_t of_user = 0;
};

EngineLeases engine_leases_of(const State& state, const Worker& worker) {
  EngineLeases held;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (record.scope != wire::LeaseScope::Engine) return;
    const Worker* holder = state.workers.find(record.worker());
    if (record.worker() == worker.id) ++held.of_worker;
    if (holder != nullptr && holder->uid == worker.uid) ++held.of_user;
  });
  return held;
}

/// Limits the engine leases of one worker and of one user, so that slots remain for others.
Result<void> check_room_for_lease(Decision& decision, const Worker& worker) {
  TRY(require_free_slot(decision));
  const State& state = decision.state;
  const EngineLeases held = engine_leases_of(state, worker);
  if (held.of_worker >= state.config.max_engine_leases) {
    return fail(Errc::PoolExhausted,
                fmt::format("worker {} holds {} engine leases, the limit for one worker; start it "
                            "with a coarser --weights-scope, or raise --max-engine-leases",
                            worker.name, held.of_worker));
  }
  if (held.of_user >= state.config.engine_leases_per_user()) {
    return fail(
        Errc::PoolExhausted,
        fmt::format("workers of user {} hold {} engine leases, the user's share of {} slots; "
                    "start them with a coarser --weights-scope, or raise --slots",
                    worker.uid, held.of_user, state.config.slot_count));
  }
  return {};
}

/// The error if the worker's user has no room left in its share.
std::unexpected<Error> no_room_for_region(const WeightsStore& weights, const Worker& worker,
                                          std::uint64_t size_bytes) {
  const WeightsUse held = weights.held_by(worker.uid);
  const WeightsUse& share = weights.share();
  const bool ever = size_bytes <= share.size_bytes;
  return fail(
      Errc::PoolExhausted,
      fmt::format("{} bytes of weights requested; user {} holds {} of {} bytes and {} of {} "
                  "regions, its share of the broker's: {}",
                  size_bytes, worker.uid, held.size_bytes, share.size_bytes, held.regions,
                  share.regions,
                  ever ? "stop a worker or let it sleep, or raise --weights-capacity"
                       : "this can never fit; raise --weights-capacity"));
}

/// Opens the lease; the event RegionLent answers the call. Precondition: check_room_for_lease
/// succeeded.
LeaseId open_engine_lease(Decision& decision, CallId call, const Worker& worker,
                          WeightsRegion& region, const wire::WeightsOpen& open) {
  LeaseRecord& record = decision.state.leases.open(worker.id, wire::LeaseScope::Engine);
  record.granted_at = decision.now;
  record.region = region.id;
  record.model = open.model;
  record.part = open.part;
  record.calls.open = call;
  ++region.users;
  decision.add(effect::PublishGrant{record.id(), TimePoint{}});
  record_lease(decision, record);
  return record.id();
}

Answer opened(const WeightsRegion& region, LeaseRecord& record) {
  const bool published = region.state == RegionState::Published;
  record.sent_to_worker = true;
  return Answer{
      wire::WeightsOpened{.region = region.id, .lease = record.id(), .published = published},
      RegionDescriptor{region.id, !published}};
}

/// Shares a published or retained region. Errors: WeightsLoading while another call fills it.
CallResult open_existing(Decision& decision, CallId call, const Worker& worker,
                         WeightsRegion& region, const wire::WeightsOpen& open) {
  if (region.size_bytes != open.size_bytes) {
    return fail(Errc::BadRequest, fmt::format("this weights region has {} bytes, not {}",
                                              region.size_bytes, open.size_bytes));
  }
  LeaseRecord* held = engine_lease_on(decision.state, worker, region.id);
  const bool busy = region.publish_call || (held != nullptr && held->calls.open);
  if (busy || (region.state == RegionState::Loading && held == nullptr)) {
    return fail(Errc::WeightsLoading, "another call loads or opens this region; retry");
  }
  // The worker repeats its call: it lost the first answer, or starts again after a failure.
  if (held != nullptr) return opened(region, *held);
  TRY(check_room_for_lease(decision, worker));
  const LeaseId lease = open_engine_lease(decision, call, worker, region, open);
  if (region.state == RegionState::Retained) {
    move(region, RegionState::Published);
    record_region(decision, region, name(region.state));
  }
  decision.add(effect::ShareRegion{lease});
  return std::nullopt;
}

void evict(Decision& decision, std::span<const RegionId> regions) {
  for (const RegionId id : regions) close_region(decision, *decision.state.weights.find(id));
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::WeightsOpen& open) {
  State& state = decision.state;
  if (state.stopping) return std::unexpected(broker_stopping());
  const Worker* worker = TRY(calling_worker(state, caller));
  if (worker->sleep == SleepState::Asleep) {
    return fail(Errc::WeightsLoading, fmt::format("worker {} is asleep; it calls weights.wake "
                                                  "before it restores its weights",
                                                  worker->name));
  }
  TRY(check(open));
  TRY(require_device(state));
  if (WeightsRegion* region = state.weights.find_usable(key_of(open, worker->uid))) {
    return open_existing(decision, caller.call, *worker, *region, open);
  }
  TRY(check_room_for_lease(decision, *worker));
  const auto evicted = state.weights.room_for(open.size_bytes, worker->uid);
  if (!evicted) return no_room_for_region(state.weights, *worker, open.size_bytes);
  evict(decision, *evicted);
  WeightsRegion& region = state.weights.add(key_of(open, worker->uid), open.size_bytes, worker->id);
  const LeaseId lease = open_engine_lease(decision, caller.call, *worker, region, open);
  record_region(decision, region, name(region.state));
  decision.add(effect::CreateRegion{lease, region.id, region.size_bytes});
  return std::nullopt;
}

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::WeightsPublish& publish) {
  const Worker* worker = TRY(calling_worker(decision.state, caller));
  WeightsRegion* region = decision.state.weights.find(publish.region);
  if (region == nullptr || region->loader != worker->id) {
    return fail(Errc::PermissionDenied,
                fmt::format("this worker does not load region {}", publish.region.value));
  }
  if (region->state == RegionState::Published) {
    return Answer{wire::Empty{}, RegionDescriptor{region->id, false}};
  }
  const bool loading = region->state == RegionState::Loading && !region->publish_call;
  if (!loading || engine_lease_on(decision.state, *worker, region->id) == nullptr) {
    return fail(Errc::LeaseRevoked,
                "the engine lease of this region was revoked; open the weights again");
  }
  region->publish_call = caller.call;
  decision.add(effect::SealRegion{region->id});
  return std::nullopt;
}

void decide_event(Decision& decision, const RegionLent& lent) {
  const auto found = decision.state.leases.find(lent.lease);
  if (!found || !(*found)->calls.open) return;  // revoked and answered meanwhile
  LeaseRecord& record = **found;
  const CallId call = *std::exchange(record.calls.open, std::nullopt);
  if (!lent.refused) {
    return decision.reply(call, opened(*decision.state.weights.find(record.region), record));
  }
  revoke_leases(decision, std::vector{lent.lease}, RevokeReason::Released);
  fence_if_never_mapped(decision, record);
  decision.reply(call, std::unexpected(*lent.refused));
}

void decide_event(Decision& decision, const RegionSealed& sealed) {
  WeightsRegion* region = decision.state.weights.find(sealed.region);
  if (region == nullptr || !region->publish_call) return;
  const CallId call = *std::exchange(region->publish_call, std::nullopt);
  if (sealed.refused) return decision.reply(call, std::unexpected(*sealed.refused));
  if (region->state != RegionState::Loading) {
    return decision.reply(call,
                          fail(Errc::LeaseRevoked,
                               "the lease was revoked during the publish; open the weights again"));
  }
  move(*region, RegionState::Published);
  record_region(decision, *region, name(region->state));
  decision.reply(call, Answer{wire::Empty{}, RegionDescriptor{region->id, false}});
}

void decide_event(Decision& decision, const RegionScrubbed& scrubbed) {
  WeightsRegion* region = decision.state.weights.find(scrubbed.region);
  if (region == nullptr) return;
  if (region->quarantine) return finish_release(decision, *region, scrubbed.allocated_bytes);
  if (region->state != RegionState::Scrubbing) return;
  if (scrubbed.allocated_bytes != 0) {
    const Worker* loader = decision.state.workers.find(region->loader);
    return quarantine_region(decision, *region,
                             {.worker = region->loader,
                              .worker_name = loader != nullptr ? loader->name : "",
                              .since = decision.now,
                              .allocated_bytes = scrubbed.allocated_bytes});
  }
  record_region(decision, *region, "Free");
  decision.state.weights.remove(region->id);
}

}  // namespace leasehold
