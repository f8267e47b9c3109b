#include "broker/decide/lease/adapter_leases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "broker/decide/lease/grant.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/reclaim.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "broker/decide/worker/unavailable.hpp"

namespace leasehold {
namespace {

/// Retry interval for memory that an evicted adapter, or another lease, gives back.
constexpr std::int64_t kMemoryReturns_ms = 50;

Result<const Worker*> ready_worker(State& state, ConnectionId connection) {
  const Worker* worker = state.workers.find_by_connection(connection);
  if (worker != nullptr && worker->resuming)
    return std::unexpected(worker_reconnecting(worker->name));
  if (worker != nullptr && worker->state == WorkerState::Ready && !worker->untrusted) return worker;
  return fail(Errc::PermissionDenied,
              "only a ready worker that the broker trusts opens adapters; call worker.ready first");
}

/// The newest version, if the tenant may use it and the worker asks for it.
Result<const journal::AdapterRow*> openable(const State& state, const wire::AdapterOpen& open) {
  const journal::AdapterRow* adapter = state.adapters.find_for(open.tenant, open.adapter);
  if (adapter != nullptr && adapter->version == open.version) return adapter;
  return std::unexpected(unknown_adapter(open.adapter));
}

Result<void> check_digest(const journal::AdapterRow& adapter, const wire::AdapterOpen& open) {
  if (adapter.digest.empty() || adapter.digest == open.digest) return {};
  return std::unexpected(
      Error{Errc::FileCorrupt,
            fmt::format("adapter {} version {} has SHA-256 {}, but the file's is {}; restore the "
                        "file, or make a new version with `brokerctl adapters add`",
                        adapter.id.value, adapter.version, adapter.digest, open.digest),
            FailureScope::Adapter});
}

Result<void> require_unopened(const State& state, const Worker& worker,
                              const journal::AdapterRow& adapter) {
  for (const LeaseId id : state.leases.index().adapters_of(adapter.tenant)) {
    const LeaseRecord& record = *state.leases.find_open(id);
    const bool is_same = record.worker() == worker.id && record.part == adapter.id.value &&
                         record.adapter_version == adapter.version;
    if (!is_same) continue;
    return fail(Errc::IllegalTransition,
                fmt::format("lease {} on worker {} is for adapter {} version {} already; retry "
                            "after its end",
                            to_string(id), worker.name, adapter.id.value, adapter.version));
  }
  return {};
}

/// What an owner's adapter leases hold until they are fenced.
struct Held {
  std::set<std::string> names;
  std::uint64_t bytes = 0;
};

/// `worker`: only leases on this worker.
Held adapters_held_by(const State& state, const TenantId& owner,
                      std::optional<AttachmentId> worker) {
  Held held;
  for (const LeaseId id : state.leases.index().adapters_of(owner)) {
    const LeaseRecord& record = *state.leases.find_open(id);
    if (worker && record.worker() != *worker) continue;
    held.names.insert(record.part);
    held.bytes += kv_extents(state, record) * state.extents.extent_size_bytes();
  }
  return held;
}

std::unexpected<Error> over_quota(const journal::AdapterRow& adapter, const std::string& why) {
  return fail(Errc::QuotaAdapters, fmt::format("adapter {}: {}", adapter.id.value, why));
}

/// Shared adapters are charged to no tenant, so they have a limit of their own on each worker.
Result<void> require_shared_quota(const State& state, const Worker& worker,
                                  const journal::AdapterRow& adapter, std::uint64_t bytes) {
  const Held held = adapters_held_by(state, {}, worker.id);
  const std::uint64_t most = state.config.max_shared_adapter_bytes;
  if (bytes <= most && held.bytes <= most - bytes) return {};
  return over_quota(adapter,
                    fmt::format("shared adapters on worker {} hold {} bytes, {} more are needed "
                                "and --max-shared-adapter-bytes of the broker is {}",
                                worker.name, held.bytes, bytes, most));
}

Result<void> require_quota(const State& state, const Worker& worker,
                           const journal::AdapterRow& adapter, std::uint64_t bytes) {
  if (adapter.tenant.value.empty()) return require_shared_quota(state, worker, adapter, bytes);
  const wire::TenantPolicy& policy = state.tenants.find(adapter.tenant)->policy;
  Held held = adapters_held_by(state, adapter.tenant, std::nullopt);
  held.names.insert(adapter.id.value);
  if (held.names.size() > policy.max_adapters) {
    return over_quota(adapter,
                      fmt::format("tenant {} would have {} adapters loaded and its "
                                  "max_adapters is {}",
                                  adapter.tenant.value, held.names.size(), policy.max_adapters));
  }
  const std::uint64_t most = policy.max_adapter_bytes;
  if (bytes <= most && held.bytes <= most - bytes) return {};
  return over_quota(adapter,
                    fmt::format("adapters of tenant {} hold {} bytes, {} more are needed and its "
                                "max_adapter_bytes is {}",
                                adapter.tenant.value, held.bytes, bytes, most));
}

/// Precondition: a worker is ready, so the extent size is chosen.
std::uint64_t extents_for(const State& state, std::uint64_t size_bytes) {
  const std::uint64_t extent_bytes = state.extents.extent_size_bytes();
  return size_bytes / extent_bytes + (size_bytes % extent_bytes != 0 ? 1 : 0);
}

Error retry_soon(Error error) {
  if (error.code == Errc::PoolExhausted && error.retry_after_ms == 0)
    error.retry_after_ms = kMemoryReturns_ms;
  return error;
}

/// Precondition: there is a free slot.
LeaseRecord& open_lease_on(Decision& decision, const Worker& worker,
                           const journal::AdapterRow& adapter) {
  LeaseRecord& record = decision.state.leases.open(worker.id, wire::LeaseScope::Adapter);
  record.granted_at = decision.now;
  record.tenant = adapter.tenant;
  record.part = adapter.id.value;
  record.adapter_version = adapter.version;
  decision.add(effect::PublishGrant{record.id(), TimePoint{}});
  record_lease(decision, record);
  return record;
}

void pin_digest(Decision& decision, const wire::AdapterOpen& open) {
  if (!decision.state.adapters.find(open.adapter)->digest.empty()) return;
  decision.state.adapters.pin(open.adapter, open.digest);
  decision.touched.adapters.push_back(open.adapter);
}

Result<LeaseRecord*> own_lease(State& state, ConnectionId connection, LeaseId lease) {
  LeaseRecord* record = TRY(state.leases.find(lease));
  const Worker* worker = state.workers.find_by_connection(connection);
  const bool is_own = worker != nullptr && record->worker() == worker->id &&
                      record->scope == wire::LeaseScope::Adapter;
  if (is_own) return record;
  return fail(Errc::PermissionDenied,
              fmt::format("lease {} is not one of an adapter on this worker", to_string(lease)));
}

CallResult open_adapter(Decision& decision, const Caller& caller, const wire::AdapterOpen& open) {
  State& state = decision.state;
  if (state.stopping) return std::unexpected(broker_stopping());
  const Worker& worker = *TRY(ready_worker(state, caller.connection));
  const journal::AdapterRow& adapter = *TRY(openable(state, open));
  TRY(check_digest(adapter, open));
  TRY(require_unopened(state, worker, adapter));
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t extents = std::min(kMost, extents_for(state, open.size_bytes));
  TRY(require_quota(state, worker, adapter, extents * state.extents.extent_size_bytes()));
  const ExtentDemand demand{.tenant = adapter.tenant,
                            .worker = worker.id,
                            .extents = static_cast<std::uint32_t>(extents),
                            .purpose = ExtentDemand::For::Adapter};
  if (const auto room = require_room(state, demand, decision.now); !room)
    return refuse_or_reclaim(decision, caller.call, demand, retry_soon(room.error()));
  if (const auto slot = require_free_slot(decision); !slot)
    return std::unexpected(retry_soon(slot.error()));
  if (Tenant* owner = state.tenants.find(adapter.tenant)) owner->claim = {};
  LeaseRecord& record = open_lease_on(decision, worker, adapter);
  pin_digest(decision, open);
  grant_extents(decision, record, {.call = caller.call, .count = demand.extents});
  return std::nullopt;  // answered once the worker has mapped everything
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterOpen& open) {
  CallResult result = open_adapter(decision, caller, open);
  if (!result) decision.state.adapters.count_refusal(result.error().code);
  return result;
}

void finish_adapter_open(Decision& decision, LeaseRecord& record, CallId call) {
  record.acquired = true;
  decision.touch(record.id());
  decision.reply(call, Answer{wire::AdapterOpened{.lease = record.id()}});
}

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::AdapterFilled& filled) {
  State& state = decision.state;
  LeaseRecord& record = *TRY(own_lease(state, caller.connection, filled.lease));
  TRY(require_live(record));
  if (!record.acquired) {
    return fail(Errc::BadRequest, fmt::format("lease {} is not mapped yet; wait for the reply to "
                                              "adapter.open",
                                              to_string(filled.lease)));
  }
  if (record.filled) return Answer{};
  record.filled = true;
  decision.touch(record.id());
  decision.record(events::AdapterLoaded{
      .adapter = {record.part},
      .version = record.adapter_version,
      .tenant = record.tenant.value,
      .lease = record.id(),
      .worker = state.workers.find(record.worker())->name,
      .size_bytes = kv_extents(state, record) * state.extents.extent_size_bytes()});
  return Answer{};
}

/// A false report can only end a lease of the reporting worker. The fence still waits for its
/// proof.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterClose& close) {
  const auto found = own_lease(decision.state, caller.connection, close.lease);
  if (!found && found.error().code == Errc::StaleGeneration) return Answer{};
  const LeaseRecord& record = *TRY(found);
  if (record.is(LeaseState::Live))
    revoke_leases(decision, std::vector{record.id()}, RevokeReason::ModelUnloaded);
  return Answer{};
}

void record_adapter_end(Decision& decision, const LeaseRecord& record) {
  const Worker* worker = decision.state.workers.find(record.worker());
  decision.record(events::AdapterEvicted{.adapter = {record.part},
                                         .version = record.adapter_version,
                                         .tenant = record.tenant.value,
                                         .lease = record.id(),
                                         .worker = worker == nullptr ? "" : worker->name,
                                         .reason = reason_of(record.lease)});
}

}  // namespace leasehold
