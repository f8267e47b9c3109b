#include "broker/decide/memory/reserves.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/memory/return_memory.hpp"

namespace leasehold {
namespace {

/// Blocks per extent of the attached worker that has the fewest. 0: no worker is attached.
std::uint32_t fewest_blocks_per_extent(const State& state) {
  std::uint32_t fewest = 0;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state == WorkerState::Gone || worker.blocks_per_extent == 0) continue;
    fewest = fewest == 0 ? worker.blocks_per_extent : std::min(fewest, worker.blocks_per_extent);
  }
  return fewest;
}

/// Rounds up to whole units; 0 if `unit` is 0.
std::uint64_t units_of(std::uint64_t amount, std::uint64_t unit) {
  return unit == 0 ? 0 : (amount + unit - 1) / unit;
}

/// The reserve in extents.
std::uint64_t reserve_of(const State& state, std::uint64_t reserved_bytes) {
  return units_of(reserved_bytes, state.extents.extent_size_bytes());
}

/// Extents of live leases, by tenant.
using ExtentsByTenant = std::map<TenantId, std::uint64_t>;

/// Counts scavenger leases only if `scavenger`, otherwise all other leases only.
ExtentsByTenant held_extents(const State& state, bool scavenger = false) {
  ExtentsByTenant held;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (record.is(LeaseState::Live) && record.scavenger == scavenger)
      held[record.tenant] += kv_extents(state, record);
  });
  return held;
}

std::uint64_t held_by(const ExtentsByTenant& held, const TenantId& tenant) {
  const auto found = held.find(tenant);
  return found == held.end() ? 0 : found->second;
}

std::uint64_t unused_of(std::uint64_t reserve, std::uint64_t held) {
  return reserve - std::min(reserve, held);
}

struct TierSums {
  std::uint64_t reserved = 0;
  std::uint64_t unused = 0;         ///< Reserved but not held by the tenant of the reserve.
  std::uint64_t of_scavengers = 0;  ///< Extents that scavengers hold.
};

/// If `changed` is given, it replaces the current policy of its tenant in the sums.
TierSums sum_tiers(const State& state, const wire::TenantPolicy* changed = nullptr) {
  const ExtentsByTenant held = held_extents(state);
  TierSums sums;
  for (const auto& [id, extents] : held_extents(state, true)) sums.of_scavengers += extents;
  const auto add = [&](const wire::TenantPolicy& policy, std::uint64_t reserve) {
    const std::uint64_t held_here = held_by(held, policy.tenant);
    sums.reserved += reserve;
    sums.unused += unused_of(reserve, held_here);
    if (policy.tier == wire::Tier::Scavenger) sums.of_scavengers += held_here;
  };
  for (const auto& [id, tenant] : state.tenants.all()) {
    if (changed == nullptr || changed->tenant != id)
      add(tenant.policy, reserve_of(state, tenant.reserved_bytes));
  }
  if (changed != nullptr) add(*changed, reserve_of(state, reserve_for(state, *changed)));
  return sums;
}

/// Extents of unused reserves that neither free memory nor extents of scavengers cover.
std::uint64_t uncovered(const State& state, const TierSums& sums) {
  const auto bytes = state.extents.bytes_by_state();
  const std::uint64_t held_bytes = bytes[static_cast<std::size_t>(ExtentState::Held)];
  const std::uint64_t extent_bytes = std::max<std::uint64_t>(1, state.extents.extent_size_bytes());
  const std::uint64_t covers =
      state.extents.free_extents() + held_bytes / extent_bytes + sums.of_scavengers;
  return sums.unused - std::min(sums.unused, covers);
}

/// Refuses extents beyond the worker's descriptors: the kernel would cut them off the message.
Result<void> require_descriptors(const State& state, const ExtentDemand& demand) {
  const Worker& worker = *state.workers.find(demand.worker);
  if (worker.max_extents == 0) return {};
  std::uint64_t mapped = 0;
  for (const LeaseId lease : state.leases.index().of(demand.worker).open) {
    mapped += state.leases.find_open(lease)->extents.size();
  }
  if (mapped + demand.extents <= worker.max_extents) return {};
  const bool ever = demand.extents <= worker.max_extents;
  return fail(Errc::PoolExhausted,
              fmt::format("{} extents requested, worker {} has {} and descriptors for {}: {}",
                          demand.extents, worker.name, mapped, worker.max_extents,
                          ever ? "retry when leases end, or name another worker"
                               : "ask for fewer, or raise the worker's LimitNOFILE"));
}

Result<void> require_free_extents(const State& state, const ExtentDemand& demand) {
  const std::uint32_t wanted = demand.extents;
  const std::uint32_t free = state.extents.free_extents_for(demand.worker);
  if (wanted <= free) return {};
  const std::uint64_t all = state.extents.capacity_extents();
  const auto quarantined = std::ranges::count_if(state.extents.records(), [](const auto& entry) {
    return entry.second.quarantine.has_value() && entry.second.pool == MemoryPool::Kv;
  });
  std::string_view advice = "retry when leases end, or ask for fewer";
  if (wanted > all) {
    advice = "this can never fit; ask for fewer, or start the broker with a larger --capacity";
  } else if (wanted + static_cast<std::uint64_t>(quarantined) > all) {
    advice = "release quarantined memory first, see `brokerctl quarantine list`";
  } else if (state.config.lends_device()) {
    advice =
        "retry when leases end, ask for fewer, or name the worker that had the memory last: device "
        "memory stays with a worker until it exits";
  }
  return fail(
      wanted > all ? Errc::BadRequest : Errc::PoolExhausted,
      fmt::format("{} extents requested, {} of {} are free: {}", wanted, free, all, advice));
}

std::unexpected<Error> kept_for_reserves(std::uint64_t wanted, std::uint64_t free) {
  return fail(Errc::PoolExhausted,
              fmt::format("{} extents requested, {} are free, but kept for the reserves of "
                          "guaranteed tenants: retry when leases end, or ask for fewer",
                          wanted, free));
}

/// What a scavenger lease gave up is not taken by the next one, but kept for the tenant that asked.
Result<void> require_unclaimed(const State& state, const ExtentDemand& demand, TimePoint now) {
  std::uint64_t claimed = 0;
  for (const auto& [id, tenant] : state.tenants.all()) {
    if (tenant.claim.until <= now) continue;
    if (id == demand.tenant)
      return fail(Errc::PoolExhausted, "clients of the tenant wait for its memory: retry later");
    claimed += tenant.claim.extents;
  }
  const std::uint64_t free = state.extents.free_extents_for(demand.worker);
  if (demand.extents + claimed <= free) return {};
  return fail(Errc::PoolExhausted,
              fmt::format("{} extents requested, {} are free, but other tenants wait for them: "
                          "retry when leases end",
                          demand.extents, free));
}

}  // namespace

bool is_of_scavenger(const State& state, const TenantId& tenant, bool scavenger) {
  const Tenant* found = state.tenants.find(tenant);
  return scavenger || (found != nullptr && found->policy.tier == wire::Tier::Scavenger);
}

std::uint64_t most_extents(const State& state, const wire::TenantPolicy& policy,
                           const Worker& worker) {
  std::uint64_t most = state.extents.capacity_extents();
  const bool is_bound = policy.tier != wire::Tier::Scavenger && state.tenants.reserved_blocks() > 0;
  for (const auto& [id, tenant] : state.tenants.all()) {
    if (!is_bound || id == policy.tenant) continue;
    most -= std::min(most, reserve_of(state, tenant.reserved_bytes));
  }
  return worker.max_extents == 0 ? most : std::min<std::uint64_t>(most, worker.max_extents);
}

std::uint64_t kv_extents(const State& state, const LeaseRecord& record) {
  return state.extents.of_pool(MemoryPool::Kv, record.extents).size();
}

Result<void> require_lendable(const State& state, const ExtentDemand& demand) {
  TRY(require_device(state));
  return require_descriptors(state, demand);
}

std::uint64_t unused_reserve(const State& state, const TenantId& tenant) {
  const Tenant* found = state.tenants.find(tenant);
  if (found == nullptr) return 0;  // published text has no tenant
  const std::uint64_t reserve = reserve_of(state, found->reserved_bytes);
  return reserve == 0 ? 0 : unused_of(reserve, held_by(held_extents(state), tenant));
}

std::map<TenantId, std::uint64_t> extents_beyond_reserves(const State& state) {
  ExtentsByTenant beyond = held_extents(state);
  for (auto& [id, extents] : beyond) {
    const Tenant* found = state.tenants.find(id);
    if (found != nullptr) extents -= std::min(extents, reserve_of(state, found->reserved_bytes));
  }
  return beyond;
}

std::uint64_t claimed_by_others(const State& state, const TenantId& tenant, TimePoint now) {
  std::uint64_t claimed = 0;
  for (const auto& [id, other] : state.tenants.all()) {
    if (id == tenant || other.claim.until <= now) continue;
    claimed += std::min<std::uint64_t>(other.claim.extents, unused_reserve(state, id));
  }
  return claimed;
}

Result<void> require_room(const State& state, const ExtentDemand& demand, TimePoint now) {
  TRY(require_lendable(state, demand));
  TRY(require_free_extents(state, demand));
  if (demand.scavenger) TRY(require_unclaimed(state, demand, now));
  if (state.tenants.reserved_blocks() == 0) return {};
  const std::uint64_t wanted = demand.extents;
  const std::uint64_t free = state.extents.free_extents_for(demand.worker);
  if (wanted + claimed_by_others(state, demand.tenant, now) > free) {
    return kept_for_reserves(wanted, free);
  }
  if (is_of_scavenger(state, demand.tenant, demand.scavenger)) return {};
  const std::uint64_t own = unused_reserve(state, demand.tenant);
  if (wanted <= own) return {};
  const TierSums sums = sum_tiers(state);
  if (wanted + sums.unused - own <= free + sums.of_scavengers) return {};
  return kept_for_reserves(wanted, free);
}

std::uint64_t lacking_extents(const State& state, const ExtentDemand& demand, TimePoint now) {
  std::uint64_t needed = demand.extents + claimed_by_others(state, demand.tenant, now);
  const std::uint64_t own = unused_reserve(state, demand.tenant);
  if (demand.extents > own && !is_of_scavenger(state, demand.tenant, demand.scavenger)) {
    const TierSums sums = sum_tiers(state);
    const std::uint64_t uncovered = demand.extents + sums.unused - own;
    needed = std::max(needed, uncovered - std::min(uncovered, sums.of_scavengers));
  }
  return needed - std::min<std::uint64_t>(needed, state.extents.free_extents_for(demand.worker));
}

Result<void> require_coverable(const State& state, const wire::TenantPolicy& policy) {
  const Tenant* known = state.tenants.find(policy.tenant);
  const std::uint32_t earlier = known == nullptr ? 0 : known->policy.reserved_blocks;
  if (state.tenants.reserved_blocks() == 0 && policy.reserved_blocks == 0) return {};
  const std::uint32_t per_extent = fewest_blocks_per_extent(state);
  if (per_extent == 0 && policy.reserved_blocks > earlier) {
    return fail(
        Errc::NoModelLoaded,
        fmt::format(
            "{} blocks cannot be reserved for tenant {}: no attached worker reports the size "
            "of a block yet; retry when one is ready",
            policy.reserved_blocks, policy.tenant.value));
  }
  const TierSums sums = sum_tiers(state, &policy);
  const std::uint64_t capacity = state.extents.capacity_extents();
  if (policy.reserved_blocks > earlier && sums.reserved > capacity) {
    const std::uint64_t others = sums.reserved - reserve_of(state, reserve_for(state, policy));
    const std::uint64_t room = (capacity - std::min(capacity, others)) * per_extent;
    return fail(Errc::BadRequest,
                fmt::format("reserved_blocks of tenant {} is {}, but the capacity has room for {} "
                            "beside other reserves; ask for fewer",
                            policy.tenant.value, policy.reserved_blocks, room));
  }
  const std::uint64_t missing = uncovered(state, sums);
  if (missing <= uncovered(state, sum_tiers(state))) return {};
  return fail(Errc::PoolExhausted,
              fmt::format("the policy of tenant {} would leave {} extents of reserves without "
                          "memory: retry when leases of this tenant, or of others that are not "
                          "scavengers, end, or revoke some",
                          policy.tenant.value, missing));
}

std::uint64_t reserve_for(const State& state, const wire::TenantPolicy& policy) {
  const Tenant* known = state.tenants.find(policy.tenant);
  const bool is_fixed = known != nullptr && known->reserved_bytes > 0 &&
                        known->policy.reserved_blocks == policy.reserved_blocks;
  if (is_fixed) return known->reserved_bytes;
  return units_of(policy.reserved_blocks, fewest_blocks_per_extent(state)) *
         state.extents.extent_size_bytes();
}

void fix_reserves(Decision& decision) {
  for (const auto& [id, tenant] : decision.state.tenants.all()) {
    if (tenant.policy.reserved_blocks == 0 || tenant.reserved_bytes > 0) continue;
    decision.state.tenants.find(id)->reserved_bytes = reserve_for(decision.state, tenant.policy);
    decision.touched.tenants.push_back(id);
  }
}

std::uint64_t reserved_beyond_capacity(const State& state) {
  const std::uint64_t reserved = sum_tiers(state).reserved;
  return reserved - std::min<std::uint64_t>(reserved, state.extents.capacity_extents());
}

}  // namespace leasehold
