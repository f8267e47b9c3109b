#include "tests/simulation/reserve_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/simulation/judge.hpp"
#include "tests/simulation/model_broker.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint64_t kBlocksPerExtent = kExtentBytes / kBlockBytes;

std::uint64_t extents_of(std::uint64_t blocks) {
  return (blocks + kBlocksPerExtent - 1) / kBlocksPerExtent;
}

/// Extents of the tenant's scavenger leases, or of its others.
std::uint64_t owned_by(const State& state, const TenantId& tenant, bool scavenger = false) {
  std::uint64_t owned = 0;
  for (const auto& [id, extent] : state.extents.records()) {
    if (extent.pool != MemoryPool::Kv) continue;
    const LeaseRecord* lease = state.leases.find_open(extent.lease);
    if (extent.state == ExtentState::Owned && lease->tenant == tenant &&
        lease->scavenger == scavenger)
      ++owned;
  }
  return owned;
}

std::uint64_t in_state(const State& state, ExtentState wanted) {
  const auto is_wanted = [wanted](const auto& entry) {
    return entry.second.pool == MemoryPool::Kv && entry.second.state == wanted;
  };
  return static_cast<std::uint64_t>(std::ranges::count_if(state.extents.records(), is_wanted));
}

std::uint64_t returning(const State& state) {
  return in_state(state, ExtentState::Draining) + in_state(state, ExtentState::Scrubbing) +
         in_state(state, ExtentState::Retained);
}

bool any_lease_drains(const State& state) {
  bool any = false;
  state.leases.for_each_open([&any](const LeaseRecord& record) {
    any = any || (record.is(LeaseState::Live) && record.drain_deadline != TimePoint{});
  });
  return any;
}

const Error* refusal_of(CallId call, std::span<const Effect> effects) {
  for (const Effect& effect : effects) {
    const auto* reply = std::get_if<effect::Reply>(&effect);
    if (reply != nullptr && reply->call == call && !reply->answer) return &reply->answer.error();
  }
  return nullptr;
}

struct AdaptersHeld {
  std::set<std::string> names;
  std::uint64_t bytes = 0;
};

/// `worker`: only those on this one.
AdaptersHeld adapters_held(const State& state, const TenantId& owner,
                           std::optional<AttachmentId> worker) {
  AdaptersHeld held;
  for (const auto& [id, extent] : state.extents.records()) {
    const LeaseRecord* lease = state.leases.find_open(extent.lease);
    const bool counts = lease != nullptr && lease->scope == wire::LeaseScope::Adapter &&
                        lease->tenant == owner && !lease->is(LeaseState::Fenced) &&
                        (!worker || lease->worker() == *worker);
    if (!counts) continue;
    held.names.insert(lease->part);
    held.bytes += kExtentBytes;
  }
  return held;
}

}  // namespace

void check_reserves(const State& state) {
  if (state.extents.extent_size_bytes() == 0) return;  // restarted without workers
  std::uint64_t unused = 0;
  std::uint64_t covers = state.extents.free_extents() + returning(state) +
                         in_state(state, ExtentState::Quarantined) +
                         in_state(state, ExtentState::Held);
  for (const auto& [id, tenant] : state.tenants.all()) {
    const std::uint64_t reserve = extents_of(tenant.policy.reserved_blocks);
    const std::uint64_t owned = owned_by(state, id);
    unused += reserve - std::min(reserve, owned);
    covers += owned_by(state, id, true);
    if (tenant.policy.tier == wire::Tier::Scavenger) covers += owned;
  }
  if (unused > covers) {
    violated(
        fmt::format("{} extents of reserves are unused, but {} can cover them", unused, covers));
  }
}

void check_swap_shares(const State& state) {
  std::map<TenantId, std::uint64_t> held;
  for (const auto& [id, extent] : state.extents.records()) {
    const LeaseRecord* lease = state.leases.find_open(extent.lease);
    const bool counts = extent.pool == MemoryPool::Swap && lease != nullptr &&
                        extent.state != ExtentState::Quarantined;  // belongs to no tenant
    if (counts) ++held[lease->tenant];
  }
  for (const auto& [tenant, extents] : held) {
    if (extents <= (kSwapExtents + 1) / 2) continue;
    violated(
        fmt::format("tenant {} holds {} of {} swap extents", tenant.value, extents, kSwapExtents));
  }
}

void check_replacements(const State& state) {
  std::map<LeaseId, LeaseId> replaced_by;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    const bool replaces = record.replaces && record.is(LeaseState::Live);
    if (replaces && !replaced_by.emplace(*record.replaces, record.id()).second)
      violated("a lease is replaced twice: " + to_string(*record.replaces));
  });
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (!record.charged_to_replacement || record.is(LeaseState::Fenced)) return;
    const auto by = replaced_by.find(record.id());
    if (by == replaced_by.end() && record.is(LeaseState::Live))
      violated("no live lease is charged for " + to_string(record.id()));
    if (by == replaced_by.end()) return;  // both were revoked
    if (state.leases.find_open(by->second)->charged_to_replacement)
      violated("a replacement is replaced before the fence of " + to_string(record.id()));
  });
}

void check_sleepers(const State& state) {
  state.leases.for_each_open([&](const LeaseRecord& record) {
    const leasehold::Worker* worker = state.workers.find(record.worker());
    const bool sleeps = worker != nullptr && worker->sleep == SleepState::Asleep;
    if (sleeps && record.scope == wire::LeaseScope::Engine && record.is(LeaseState::Live))
      violated("a sleeping worker has weights under " + to_string(record.id()));
  });
}

void check_adapter_quotas(const State& state, const Event& event, std::span<const Effect> effects) {
  const auto* call = std::get_if<Call<wire::AdapterOpen>>(&event);
  if (call == nullptr || refusal_of(call->caller.call, effects) != nullptr) return;
  const TenantId owner = call->message.tenant.value_or(TenantId{});
  if (owner.value.empty()) {
    for (const auto& [id, worker] : state.workers.all()) {
      if (adapters_held(state, owner, id).bytes > state.config.max_shared_adapter_bytes)
        violated("shared adapters take more memory of a worker than their limit");
    }
    return;
  }
  const AdaptersHeld held = adapters_held(state, owner, std::nullopt);
  const wire::TenantPolicy& policy = state.tenants.find(owner)->policy;
  if (held.names.size() > policy.max_adapters || held.bytes > policy.max_adapter_bytes)
    violated(fmt::format("tenant {} has {} adapters of {} bytes, more than its quota", owner.value,
                         held.names.size(), held.bytes));
}

void check_refusal(const State& state, const Event& event, std::span<const Effect> effects) {
  const auto* call = std::get_if<Call<wire::LeaseAcquire>>(&event);
  if (call == nullptr || call->message.scavenger || state.config.lends_device()) return;
  const Error* refusal = refusal_of(call->caller.call, effects);
  if (refusal == nullptr || refusal->code != Errc::PoolExhausted) return;
  const leasehold::Tenant* tenant = state.tenants.find(call->message.tenant);
  if (tenant == nullptr || !state.leases.has_free_slot()) return;
  if (in_state(state, ExtentState::Quarantined) > 0) return;
  const std::uint64_t wanted = std::max<std::uint64_t>(1, extents_of(call->message.blocks));
  const std::uint64_t owned = owned_by(state, call->message.tenant);
  if (wanted + owned > extents_of(tenant->policy.reserved_blocks)) return;
  if (refusal->retry_after_ms == 0) {
    violated("a guaranteed tenant within its reserve is refused: " + refusal->detail);
  }
  if (returning(state) == 0 && !any_lease_drains(state)) {
    violated("a guaranteed tenant is asked to retry, but no memory is on its way");
  }
}

}  // namespace leasehold::simulation
