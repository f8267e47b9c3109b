#include "broker/decide/lease/retention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/succession.hpp"
#include "broker/decide/memory/return_memory.hpp"
#include "common/expects.hpp"

namespace leasehold {
namespace {

/// The retry time is short, because scrubbing takes milliseconds.
constexpr std::chrono::milliseconds kRetryWhileScrubbing{50};

Error scrubbing_error() {
  return {.code = Errc::PoolExhausted,
          .detail = fmt::format("memory kept for tenants of a worker that ended is being scrubbed; "
                                "retry in {} ms",
                                kRetryWhileScrubbing.count()),
          .retry_after_ms = kRetryWhileScrubbing.count()};
}

/// How long the memory is retained; zero: not at all. Memory that a succession waits for is
/// retained even if the configured grace is shorter.
Duration retention_of(const State& state, const LeaseRecord& record) {
  const RevokeReason reason = reason_of(record.lease);
  const bool is_replaced = reason == RevokeReason::WorkerReplaced;
  if (reason != RevokeReason::WorkerGone && !is_replaced) return Duration::zero();
  const Duration configured = state.config.timeouts.adopt_grace;
  if (is_memory_awaited(state, record)) return std::max(configured, handover_grace(state.config));
  return is_replaced && record.replaced_by ? Duration::zero() : configured;
}

}  // namespace

std::vector<ExtentId> retained_extents(const State& state, const LeaseRecord& record) {
  std::vector<ExtentId> retained = record.extents;
  std::erase_if(retained, [&](ExtentId extent) {
    return state.extents.find(extent)->state != ExtentState::Retained;
  });
  return retained;
}

bool is_retained(const State& state, const LeaseRecord& record) {
  return state.retained.contains({record.retained_until, record.id()});
}

bool is_unmapped_everywhere(const State& state, const LeaseRecord& record) {
  return record.is_unmapped || state.workers.find(record.worker())->state == WorkerState::Gone;
}

bool retains_memory(const Decision& decision, const LeaseRecord& record) {
  const State& state = decision.state;
  if (state.config.lends_device() || record.scope != wire::LeaseScope::Tenant) return false;
  if (retention_of(state, record) == Duration::zero() || state.stopping) return false;
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
  expects(record.is(LeaseState::Fenced), "memory is retained after the fence");
  record.retained_until = decision.now + retention_of(decision.state, record);
  decision.state.retained.emplace(record.retained_until, record.id());
}

/// If the old worker still maps the memory, its unmap or exit collects the memory later.
void end_retention(Decision& decision, const std::vector<LeaseId>& leases) {
  State& state = decision.state;
  for (const LeaseId id : leases) {
    const auto found = state.leases.find(id);
    if (!found || !is_retained(state, **found)) continue;
    LeaseRecord& record = **found;
    state.retained.erase({record.retained_until, id});
    decision.waits_may_end = true;
    const std::vector<ExtentId> scrubbed = retained_extents(state, record);
    for (const ExtentId extent : scrubbed) {
      state.extents.move(extent, ExtentState::Scrubbing);
      record_extent(decision, extent, &record);
    }
    punch_extents(decision, scrubbed);
    if (is_unmapped_everywhere(state, record)) verify_extents(decision, scrubbed);
    close_if_returned(decision, record);
    continue_succession(decision, record);
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
    covered += retained_extents(state, record).size();
    return true;
  });
  end_retention(decision, oldest);
  return scrubbing_error();
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
    return scrubbing_error();
  }
  return std::nullopt;
}

}  // namespace leasehold
