#include "broker/decide/deciders.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/lease/grant.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "common/fair_shares.hpp"

namespace leasehold {
namespace {

/// The retry time is short, because workers return unused extents at the end of a step.
constexpr std::chrono::milliseconds kSwapRetryAfter{50};

/// Swap extents of the tenant's open leases. They count until they are free; quarantined extents do
/// not count.
std::size_t held_by(const State& state, const TenantId& tenant) {
  std::size_t held = 0;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    if (record.tenant != tenant) return;
    held += state.extents.of_pool(MemoryPool::Swap, record.extents).size();
  });
  return held;
}

Result<void> require_share(const State& state, const TenantId& tenant, std::uint32_t extents) {
  const std::size_t capacity = state.extents.capacity_extents(MemoryPool::Swap);
  const std::size_t free = state.extents.free_extents(MemoryPool::Swap);
  const std::size_t held = held_by(state, tenant);
  for (std::uint32_t more = 0; more < extents; ++more) {
    const ResourceShare share{
        .held = held + more, .taken = capacity - free + more, .capacity = capacity};
    if (may_take_more(share)) continue;
    return fail(Errc::PoolExhausted,
                fmt::format("{} swap extents requested, {} of {} are free and tenant {} holds {}: "
                            "a tenant takes more only while it holds less than what is free",
                            extents, free, capacity, tenant.value, held));
  }
  return {};
}

bool is_asked_already(const LeaseRecord& record) {
  const std::vector<CallId>& asked = record.calls.late_shrinks;
  return std::ranges::find(asked, kInternalCall) != asked.end();
}

/// Asks all leases except `asking` for unused extents. True if a lease may have some.
bool ask_others(Decision& decision, LeaseId asking, std::uint32_t extents) {
  State& state = decision.state;
  bool any = false;
  for (const LeaseId id : state.leases.open_leases()) {
    LeaseRecord& record = state.leases.at(id);
    if (id == asking || !record.is(LeaseState::Live)) continue;
    if (!require_worker_attached(state, record)) continue;
    const std::size_t owned = owned_extents(state, record, MemoryPool::Swap).size();
    if (owned == 0) continue;
    any = true;
    if (is_asked_already(record)) continue;
    ask_for_extents(decision, record, MemoryPool::Swap,
                    static_cast<std::uint32_t>(std::min<std::size_t>(owned, extents)));
  }
  return any;
}

}  // namespace

CallResult grow_swap(Decision& decision, const Caller& caller, LeaseRecord& record,
                     std::uint32_t extents) {
  State& state = decision.state;
  const Worker* worker = state.workers.find_by_connection(caller.connection);
  if (worker == nullptr || worker->id != record.worker()) {
    return fail(Errc::PermissionDenied, fmt::format("only the worker of lease {} grows it in swap",
                                                    to_string(record.id())));
  }
  if (state.extents.capacity_bytes(MemoryPool::Swap) == 0) {
    return fail(Errc::PoolExhausted, "the broker lends no swap; start it with --swap-capacity");
  }
  TRY(require_lendable(state, {record.tenant, record.worker(), extents}));
  if (const auto room = require_share(state, record.tenant, extents); !room) {
    Error why = room.error();
    if (ask_others(decision, record.id(), extents)) why.retry_after_ms = kSwapRetryAfter.count();
    decision.reply(caller.call, std::unexpected(std::move(why)));
    return std::nullopt;
  }
  grant_extents(decision, record,
                {.call = caller.call, .pool = MemoryPool::Swap, .count = extents});
  return std::nullopt;
}

}  // namespace leasehold
