#include "broker/decide/lease/adopt.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/lease/handover.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/memory/return_memory.hpp"
#include "common/expects.hpp"

namespace leasehold {
namespace {

/// Short, because scrubbing takes milliseconds.
constexpr std::chrono::milliseconds kRetryAfter{50};

Error while_scrubbing() {
  return {.code = Errc::PoolExhausted,
          .detail = fmt::format("memory kept for tenants of a worker that ended is being scrubbed; "
                                "retry in {} ms",
                                kRetryAfter.count()),
          .retry_after_ms = kRetryAfter.count()};
}

/// True if the worker replaces `old` and can use its KV memory.
bool is_successor(const Worker& worker, const Worker& old) {
  const bool is_named = worker.name == old.name;
  const bool is_chosen = old.replacement && old.replacement->by == worker.id;
  return (is_named || is_chosen) && shares_kv(worker, old);
}

/// How long the memory is kept; zero: not at all. Memory that a handover waits for is kept even if
/// the configured grace is shorter.
Duration keep_for(const State& state, const LeaseRecord& record) {
  const RevokeReason reason = reason_of(record.lease);
  const bool is_replaced = reason == RevokeReason::WorkerReplaced;
  if (reason != RevokeReason::WorkerGone && !is_replaced) return Duration::zero();
  const Duration configured = state.config.adopt_grace;
  if (is_awaited(state, record)) return std::max(configured, handover_grace(state.config));
  return is_replaced && record.replaced_by ? Duration::zero() : configured;
}

}  // namespace

std::vector<ExtentId> kept_extents(const State& state, const LeaseRecord& record) {
  std::vector<ExtentId> kept = record.extents;
  std::erase_if(kept, [&](ExtentId extent) {
    return state.extents.find(extent)->state != ExtentState::Retained;
  });
  return kept;
}

bool is_kept(const State& state, const LeaseRecord& record) {
  return state.retained.contains({record.retained_until, record.id()});
}

bool is_unmapped_everywhere(const State& state, const LeaseRecord& record) {
  return record.is_unmapped || state.workers.find(record.worker())->state == WorkerState::Gone;
}

bool shares_kv(const Worker& worker, const Worker& old) {
  return worker.uid == old.uid && worker.kv_identity == old.kv_identity &&
         !old.kv_identity.empty() && worker.blocks_per_extent == old.blocks_per_extent;
}

bool keeps_memory(const Decision& decision, const LeaseRecord& record) {
  const State& state = decision.state;
  if (state.config.lends_device() || record.scope != wire::LeaseScope::Tenant) return false;
  if (keep_for(state, record) == Duration::zero() || state.stopping) return false;
  const bool is_mapped = record.acquired && !record.fenced_during_grant;
  const bool is_held = record.holder != ConnectionId{};
  const Worker& worker = *state.workers.find(record.worker());
  if (!is_mapped || !is_held || worker.untrusted || worker.kv_identity.empty()) return false;
  const Tenant* tenant = state.tenants.find(record.tenant);
  if (tenant == nullptr || tenant->draining) return false;
  return std::ranges::none_of(record.extents, [&state](ExtentId extent) {
    return state.extents.find(extent)->unavailable;
  });
}

void start_retention(Decision& decision, LeaseRecord& record) {
  expects(record.is(LeaseState::Fenced), "memory is kept after the fence");
  record.retained_until = decision.now + keep_for(decision.state, record);
  decision.state.retained.emplace(record.retained_until, record.id());
}

/// If the old worker still maps the memory, its unmap or exit collects the memory later.
void end_retention(Decision& decision, const std::vector<LeaseId>& leases) {
  State& state = decision.state;
  for (const LeaseId id : leases) {
    const auto found = state.leases.find(id);
    if (!found || !is_kept(state, **found)) continue;
    LeaseRecord& record = **found;
    state.retained.erase({record.retained_until, id});
    decision.waits_may_end = true;
    const std::vector<ExtentId> kept = kept_extents(state, record);
    for (const ExtentId extent : kept) {
      state.extents.move(extent, ExtentState::Scrubbing);
      record_extent(decision, extent, &record);
    }
    punch_extents(decision, kept);
    if (is_unmapped_everywhere(state, record)) verify_extents(decision, kept);
    close_if_returned(decision, record);
    continue_handover(decision, record);
  }
}

void end_retention_of(Decision& decision, const TenantId& tenant) {
  end_retention(decision, retained_where(decision.state, [&](const LeaseRecord& record) {
                  return record.tenant == tenant;
                }));
}

void expire_retentions(Decision& decision) {
  end_retention(decision, retained_where(decision.state, [&](const LeaseRecord& record) {
                  return record.retained_until <= decision.now;
                }));
}

std::optional<Error> end_retentions_for(Decision& decision, std::uint64_t extents) {
  State& state = decision.state;
  if (state.retained.empty()) return std::nullopt;
  std::uint64_t covered = 0;
  const std::vector<LeaseId> oldest = retained_where(state, [&](const LeaseRecord& record) {
    if (covered >= extents) return false;
    covered += kept_extents(state, record).size();
    return true;
  });
  end_retention(decision, oldest);
  return while_scrubbing();
}

Result<void> require_free_slot(Decision& decision) {
  if (decision.state.leases.has_free_slot()) return {};
  if (auto retry = end_retentions_for(decision, 1)) return std::unexpected(*std::move(retry));
  return fail(Errc::PoolExhausted,
              "every slot of the lease table is in use; retry when leases end");
}

std::optional<Error> end_retentions_of_exited_worker(Decision& decision) {
  const State& state = decision.state;
  for (const auto& [until, id] : state.retained) {
    const AttachmentId worker = state.leases.find_open(id)->worker();
    if (state.workers.find(worker)->state != WorkerState::Gone) continue;
    end_retention(decision, state.leases.leases_on(worker));
    return while_scrubbing();
  }
  return std::nullopt;
}

LeaseRecord* find_adoptable(State& state, const Caller& caller, const wire::LeaseAcquire& acquire) {
  if (!acquire.replaces || state.retained.empty()) return nullptr;
  const auto found = state.leases.find(*acquire.replaces);
  if (!found || !is_kept(state, **found)) return nullptr;
  const bool is_own = (*found)->tenant == acquire.tenant && (*found)->holder == caller.connection;
  return is_own ? *found : nullptr;
}

Adoption find_adoption(State& state, const Caller& caller, const wire::LeaseAcquire& acquire,
                       const Worker& worker) {
  const LeaseRecord* old = find_adoptable(state, caller, acquire);
  if (old == nullptr) return {};
  const bool is_open = is_unmapped_everywhere(state, *old);
  if (!is_open || !is_successor(worker, *state.workers.find(old->worker())))
    return {.from = old->id()};
  const std::uint64_t charged = state.leases.index().charged(acquire.tenant);
  const std::uint64_t most = state.tenants.find(acquire.tenant)->policy.max_blocks;
  const std::uint64_t room = most - std::min(most, charged);
  return {.from = old->id(),
          .extents = kept_extents(state, *old),
          .blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(old->charged_blocks, room))};
}

std::optional<std::string> adopting_worker(State& state, const Caller& caller,
                                           const wire::LeaseAcquire& acquire,
                                           const WantedWorker& wanted) {
  const LeaseRecord* old = find_adoptable(state, caller, acquire);
  if (old == nullptr || !is_unmapped_everywhere(state, *old)) return std::nullopt;
  const Worker& before = *state.workers.find(old->worker());
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.gets_leases() && is_successor(worker, before) && serves(worker, wanted))
      return worker.name;
  }
  return std::nullopt;
}

ExtentDemand beyond(ExtentDemand demand, const Adoption& adoption) {
  const auto adopted = std::min<std::size_t>(demand.extents, adoption.extents.size());
  demand.extents -= static_cast<std::uint32_t>(adopted);
  return demand;
}

std::vector<ExtentId> adopt_extents(Decision& decision, const Adoption& adoption,
                                    std::uint64_t count, LeaseRecord& by) {
  if (!adoption.from) return {};
  State& state = decision.state;
  std::vector<ExtentId> adopted = adoption.extents;
  adopted.resize(std::min<std::uint64_t>(count, adopted.size()));
  for (const ExtentId extent : adopted) {
    state.extents.adopt(extent, by.id());
    std::erase(state.leases.at(*adoption.from).extents, extent);
    by.extents.push_back(extent);
    record_extent(decision, extent, &by);
  }
  if (!adopted.empty()) by.adopted_from = adoption.from;
  by.adopted_extents = static_cast<std::uint32_t>(adopted.size());
  end_retention(decision, {*adoption.from});
  return adopted;
}

}  // namespace leasehold
