#include "broker/server/views/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "broker/server/views/adapter_views.hpp"
#include "broker/server/views/lease_view.hpp"
#include "broker/server/views/tenant_views.hpp"

namespace leasehold {

namespace {

std::string worker_name(const State& state, AttachmentId id) {
  const Worker* worker = state.workers.find(id);
  return worker ? worker->name : "";
}

std::uint64_t weights_bytes(const State& state, RegionId region) {
  const auto found = state.weights.regions().find(region);
  return found == state.weights.regions().end() ? 0 : found->second.size_bytes;
}

std::size_t extents_in(const State& state, const LeaseRecord& record, MemoryPool pool) {
  return state.extents.of_pool(pool, record.extents).size();
}

wire::LeaseTimes times_of(const LeaseRecord& record) {
  const auto* fenced = std::get_if<Lease<Fenced>>(&record.lease);
  const bool live = record.is(LeaseState::Live);
  return {.granted_boottime_ns = record.granted_at.boottime_ns,
          .revoked_boottime_ns = live ? 0 : record.revoked_at().boottime_ns,
          .fenced_boottime_ns = fenced ? fenced->state().at.boottime_ns : 0,
          .rebound_boottime_ns = record.end.rebound_at.boottime_ns,
          .worker_stopped_boottime_ns = record.end.stopped_at.boottime_ns};
}

std::string version_text(const AdapterName& adapter, const LeaseRecord& record) {
  return fmt::format("{}@{}", adapter.value, record.adapter_version);
}

std::string part_of(const LeaseRecord& record) {
  const auto adapter = record.adapter();
  return adapter ? version_text(*adapter, record) : record.part;
}

std::string model_of(const LeaseRecord& record) {
  const auto adapter = record.text_adapter();
  return adapter ? version_text(*adapter, record) : record.model;
}

std::string_view state_name(const Worker& worker) {
  constexpr std::string_view kNames[] = {"attached", "ready", "lost", "gone"};
  return kNames[static_cast<unsigned>(worker.state)];
}

/// Number of leases on the worker that are not fenced, of one scope or of all.
std::uint32_t open_on(const State& state, AttachmentId worker,
                      std::optional<wire::LeaseScope> scope = {}) {
  const auto& open = state.leases.index().of(worker).open;
  return static_cast<std::uint32_t>(std::ranges::count_if(open, [&](LeaseId id) {
    const LeaseRecord& record = *state.leases.find_open(id);
    return (!scope || record.scope == *scope) && !record.is(LeaseState::Fenced);
  }));
}

/// Engine leases do not count: the worker keeps its model.
std::uint32_t tenant_leases_on(const State& state, AttachmentId worker) {
  return open_on(state, worker, wire::LeaseScope::Tenant);
}

std::string drain_state(const State& state, const Worker& worker) {
  if (worker.replacement) return worker.replacement->done ? "replaced" : "replacing";
  if (!worker.draining && !worker.stopping) {
    constexpr std::string_view kNames[] = {"serving", "asleep", "waking"};
    if (worker.out_of_service) return "out_of_service";
    const bool is_ready = worker.state == WorkerState::Ready;
    return std::string(kNames[is_ready ? static_cast<unsigned>(worker.sleep) : 0]);
  }
  return tenant_leases_on(state, worker.id) == 0 ? "drained" : "draining";
}

/// True for a worker that is gone and of no interest any more. One that was replaced is shown until
/// the next one of its name is replaced, because `brokerctl worker replace` waits for its figures.
bool is_past(const State& state, const Worker& worker, TimePoint now) {
  if (worker.state != WorkerState::Gone || open_on(state, worker.id) > 0) return false;
  if (now - worker.gone_at >= kShowsGoneWorkers) return true;
  return std::ranges::any_of(state.workers.all(), [&](const auto& entry) {
    const Worker& later = entry.second;
    return worker.id < later.id && later.name == worker.name &&
           (!worker.replacement || later.replacement);
  });
}

}  // namespace

wire::LeaseView lease_view(const State& state, const LeaseRecord& record) {
  const auto* fenced = std::get_if<Lease<Fenced>>(&record.lease);
  const std::size_t extents = extents_in(state, record, MemoryPool::Kv);
  const std::uint64_t extent_bytes = state.extents.extent_size_bytes();
  return {.lease = record.id(),
          .scope = record.scope,
          .tenant = record.tenant.value,
          .model = model_of(record),
          .part = part_of(record),
          .worker = worker_name(state, record.worker()),
          .state = record.state(),
          .reason = reason_of(record.lease),
          .proof = fenced ? std::string(name(fenced->state().proof)) : "",
          .extents = static_cast<std::uint32_t>(extents),
          .blocks = record.charged_blocks,
          .size_bytes = extents * extent_bytes + weights_bytes(state, record.region),
          .swap_bytes = extents_in(state, record, MemoryPool::Swap) * extent_bytes,
          .quarantined_extents = record.quarantined_extents,
          .deadline_boottime_ns = record.deadline.boottime_ns,
          .drain_deadline_boottime_ns = record.drain_deadline.boottime_ns,
          .replaced_by = record.end.rebound_to ? record.end.rebound_to : record.replaced_by,
          .clocks = record.end.clocks,
          .times = times_of(record)};
}

LeasePage lease_page(const State& state, std::uint64_t first, std::size_t limit) {
  LeasePage page;
  state.leases.for_each([&](const LeaseRecord& record) {
    ++page.total;
    if (record.id().slot < first) return;
    if (page.items.size() == limit) {
      page.more = true;
    } else {
      page.items.push_back(lease_view(state, record));
    }
  });
  return page;
}

std::vector<wire::ExtentView> extent_views(const State& state, std::optional<ExtentId> after,
                                           std::size_t limit) {
  std::vector<wire::ExtentView> views;
  const auto& records = state.extents.records();
  auto next = after ? records.upper_bound(*after) : records.begin();
  for (; next != records.end() && views.size() < limit; ++next) {
    const auto& [id, record] = *next;
    views.push_back({.extent = id,
                     .pool = record.pool,
                     .state = std::string(name(record.state)),
                     .lease = record.lease,
                     .size_bytes = state.extents.extent_size_bytes()});
  }
  return views;
}

namespace {

std::string why_of(const Quarantine& quarantine) {
  if (quarantine.why == QuarantineReason::NotReturned) {
    return fmt::format("the device did not report {} bytes as free", quarantine.allocated_bytes);
  }
  return fmt::format("{} bytes were written after the fence", quarantine.allocated_bytes);
}

wire::QuarantineView view_of(const std::optional<Quarantine>& quarantine,
                             std::uint64_t size_bytes) {
  if (!quarantine) return {.size_bytes = size_bytes, .why = "quarantined by an earlier broker"};
  return {.worker = quarantine->worker_name,
          .since_boottime_ns = quarantine->since.boottime_ns,
          .size_bytes = size_bytes,
          .why = why_of(*quarantine)};
}

}  // namespace

std::vector<wire::QuarantineView> quarantine_views(const State& state) {
  std::vector<wire::QuarantineView> views;
  for (const auto& [id, record] : state.extents.records()) {
    if (record.state != ExtentState::Quarantined) continue;
    auto& view = views.emplace_back(view_of(record.quarantine, state.extents.extent_size_bytes()));
    view.extent = id;
    view.lease = record.lease;
  }
  for (const auto& [id, region] : state.weights.regions()) {
    if (region.state != RegionState::Quarantined) continue;
    views.emplace_back(view_of(region.quarantine, region.size_bytes)).region = id;
  }
  return views;
}

std::vector<wire::WorkerView> worker_views(const State& state, TimePoint now) {
  std::vector<wire::WorkerView> views;
  for (const auto& [id, worker] : state.workers.all()) {
    if (is_past(state, worker, now)) continue;
    wire::WorkerView& view =
        views.emplace_back(wire::WorkerView{.worker = worker.name,
                                            .id = worker.index,
                                            .pid = worker.pid,
                                            .state = std::string(state_name(worker)),
                                            .drain = drain_state(state, worker),
                                            .out_of_service = worker.out_of_service,
                                            .model = worker.model,
                                            .aliases = worker.aliases,
                                            .arithmetic = worker.arithmetic,
                                            .text_identity = worker.text_identity,
                                            .max_context = worker.max_context,
                                            .address = worker.address,
                                            .leases = open_on(state, id)});
    if (!worker.replacement) continue;
    const Worker* by = state.workers.find(worker.replacement->by);
    if (by != nullptr) view.replaced_by = by->name;
    view.leases_moved = worker.replacement->moved;
    view.leases_ended = worker.replacement->ended(tenant_leases_on(state, id));
  }
  return views;
}

namespace {

wire::LatencySummary summary_of(const LatencyHistogram& histogram) {
  return {.count = histogram.count(),
          .p50_ns = histogram.quantile(0.5).count(),
          .p99_ns = histogram.quantile(0.99).count(),
          .max_ns = histogram.max().count()};
}

}  // namespace

wire::RebindSummary summary_of(const LatencyHistory& history, TimePoint now) {
  return {.since_start = summary_of(history.since_start()),
          .last_minute = summary_of(history.last_minute(now))};
}

namespace {

/// Counts a lease that is revoked but not fenced, and its age.
void count_revoked(wire::StatusView& view, Duration age, Duration timeout) {
  ++view.leases_revoked;
  if (age > timeout) ++view.leases_stuck;
  view.oldest_revoked_ms =
      std::max<std::int64_t>(view.oldest_revoked_ms, age / std::chrono::milliseconds(1));
}

/// Bytes that Lost workers have mapped: they no longer serve, but may still access the memory.
std::uint64_t unproven_bytes(const State& state, MemoryPool pool) {
  std::uint64_t bytes = 0;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    const Worker* worker = state.workers.find(record.worker());
    if (worker == nullptr || worker->state != WorkerState::Lost) return;
    bytes += extents_in(state, record, pool) * state.extents.extent_size_bytes();
  });
  return bytes;
}

/// Summaries of the clocks, in the order of RevokeClock.
std::vector<wire::ClockSummary> clock_summaries(const State& state, TimePoint now) {
  std::vector<wire::ClockSummary> summaries;
  for (std::size_t i = 0; i < kRevokeClockCount; ++i) {
    const LatencyHistory& history = state.counts.clocks[i];
    summaries.push_back({.clock = std::string(kRevokeClockNames[i]),
                         .since_start = summary_of(history.since_start()),
                         .last_minute = summary_of(history.last_minute(now))});
  }
  return summaries;
}

std::vector<wire::ModeSummary> mode_summaries(const State& state, TimePoint now) {
  std::vector<wire::ModeSummary> summaries;
  for (std::size_t i = 0; i < state.counts.rebinds.size(); ++i) {
    summaries.push_back({.mode = std::string(wire::name(static_cast<wire::RebindMode>(i))),
                         .rebinds = summary_of(state.counts.rebinds.at(i), now)});
  }
  return summaries;
}

/// Counts tenants with a live lease, and tenants between two leases: the holder is about to replace
/// the lease that was revoked.
std::uint32_t count_live_tenants(const State& state, TimePoint now) {
  std::set<TenantId> live;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    const bool is_tenants = record.scope == wire::LeaseScope::Tenant;
    if (is_tenants && record.is(LeaseState::Live)) live.insert(record.tenant);
  });
  for (const auto& [id, tenant] : state.tenants.all())
    if (tenant.rebinds.may_rebind(now)) live.insert(id);
  return static_cast<std::uint32_t>(live.size());
}

template <class View>
void set_pool_bytes(View& view, const State& state, MemoryPool pool) {
  const auto bytes = state.extents.bytes_by_state(pool);
  const auto of = [&bytes](ExtentState each) { return bytes[static_cast<unsigned>(each)]; };
  view.capacity_bytes = state.extents.capacity_bytes(pool);
  view.free_bytes = of(ExtentState::Free);
  view.owned_bytes = of(ExtentState::Owned);
  view.draining_bytes = of(ExtentState::Draining);
  view.scrubbing_bytes = of(ExtentState::Scrubbing);
  view.retained_bytes = of(ExtentState::Retained);
  view.quarantined_bytes = of(ExtentState::Quarantined);
  if constexpr (requires { view.held_bytes; }) view.held_bytes = of(ExtentState::Held);
  view.unproven_bytes = unproven_bytes(state, pool);
}

}  // namespace

wire::StatusView status_view(const State& state, TimePoint now) {
  wire::StatusView view{.leases_fenced = state.counts.leases_fenced,
                        .tenants = static_cast<std::uint32_t>(state.tenants.all().size()),
                        .tenants_live = count_live_tenants(state, now),
                        .tampered = state.counts.tampered,
                        .clocks = clock_summaries(state, now),
                        .device = state.config.device,
                        .device_uuid = state.config.device_uuid,
                        .device_state = state.device_lost ? "lost" : "ready",
                        .device_losses = state.counts.device_losses,
                        .rebinds = mode_summaries(state, now),
                        .cell = cell_view(state, now)};
  set_pool_bytes(view, state, MemoryPool::Kv);
  set_pool_bytes(view.swap, state, MemoryPool::Swap);
  state.leases.for_each_open([&](const LeaseRecord& record) {
    count_adapter(state, record, view);
    if (record.is(LeaseState::Live)) ++view.leases_live;
    if (!record.is(LeaseState::Revoked)) return;
    count_revoked(view, now - record.revoked_at(), state.config.timeouts.fence);
  });
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state <= WorkerState::Ready) ++view.workers;
    if (worker.state == WorkerState::Lost) ++view.workers_lost;
    if (worker.state == WorkerState::Ready && worker.out_of_service) ++view.workers_out_of_service;
    if (worker.state == WorkerState::Ready && worker.sleep != SleepState::Awake)
      ++view.workers_asleep;
  }
  return view;
}

std::vector<wire::StepView> step_views(const State& state) {
  std::vector<wire::StepView> views;
  for (const auto& [id, step] : state.steps.newest) {
    views.push_back({.worker = worker_name(state, id), .attachment = id, .step = step});
  }
  return views;
}

std::size_t leases_not_fenced(const State& state) {
  std::size_t count = 0;
  state.leases.for_each_open(
      [&count](const LeaseRecord& record) { count += record.is(LeaseState::Fenced) ? 0 : 1; });
  return count;
}

}  // namespace leasehold
