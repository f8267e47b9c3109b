// The part of Scheduler that adds, grows, shrinks and ends leases.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/expects.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

void Scheduler::set_quota(const wire::TenantQuota& quota) {
  tenancies_.set_quota(quota);
  kv_.evict_above(quota.tenant, quota.max_blocks);
}

void Scheduler::add_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks) {
  expects(has_lease(lease), "an extent belongs to a known lease");
  tenancies_.at(lease).pool.add_extent(extent, blocks);
}

void Scheduler::add_swap_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks) {
  expects(has_lease(lease), "an extent belongs to a known lease");
  tenancies_.at(lease).swap.add_extent(extent, blocks);
  tenancies_.at(lease).swap_refused = false;
}

std::vector<ExtentId> Scheduler::remove_free_extents(LeaseId lease, std::uint32_t count,
                                                     wire::MemoryPool pool) {
  const auto found = tenancies_.find(lease);
  if (found == tenancies_.end() || transfers_.has_of(lease)) return {};
  Tenancy& tenancy = found->second;
  if (pool == wire::MemoryPool::Swap) return tenancy.swap.remove_free_extents(count);
  return kv_.remove_free_extents(tenancy, count);
}

void Scheduler::end_lease(LeaseId lease, const Completed& how) {
  if (!has_lease(lease)) return;
  std::vector<Sequence*> ending;
  for (const auto& sequence : running_) {
    const bool depends = sequence->request.lease == lease || sequence->shared_lease == lease;
    if (depends) ending.push_back(sequence.get());
  }
  for (Sequence* sequence : ending) {
    Completed end = how;
    if (end.revocation && sequence->shared_lease == lease)
      end.revocation->scope = FailureScope::Shared;
    end_sequence(*sequence, end);
  }
  end_waiting(tenancies_.at(lease), how);
  Tenancy& tenancy = tenancies_.at(lease);
  tenancy.prefixes.drop_users();
  kv_.note_gone(tenancy.prefixes);
  publications_.lease_ends(tenancy);
  tenancies_.erase(lease);
}

void Scheduler::end_all(const Error& error) {
  Completed how{.reason = CompletionReason::EngineError, .error = error};
  how.error->scope = FailureScope::Engine;
  while (!running_.empty()) end_sequence(*running_.all().back(), how);
  for (auto& [lease, tenancy] : tenancies_) end_waiting(tenancy, how);
}

void Scheduler::end_waiting(Tenancy& tenancy, const Completed& how) {
  for (const PromptRequest& request : tenancy.waiting) complete_waiting(request, how);
  tenancy.waiting.clear();
}

void Scheduler::complete_waiting(const PromptRequest& request, Completed how,
                                 bool already_delivered) {
  if (publications_.fail_fill(request, how)) return;
  tenancies_.give_back_tokens(request, request.unused_tokens);
  swap_.free(request, how);
  how.engine_request_id = request.engine_request_id;
  how.emitted_tokens = static_cast<std::uint32_t>(request.emitted.size());
  how.cached_tokens = request.cached;
  if (!already_delivered) events_.add(std::move(how));
  tenancies_.note_change(request.tenant);
}

/// Rejects a waiting request. A preempted request was admitted before, so it gets a completion
/// instead of a rejection.
void Scheduler::reject(const PromptRequest& request, Error reason) {
  if (request.was_admitted()) {
    reason.code = Errc::OutOfBlocks;
    return complete_waiting(request,
                            {.reason = CompletionReason::EngineError, .error = std::move(reason)});
  }
  if (publications_.fail_fill(request, reason)) return;
  tenancies_.give_back_tokens(request, request.unused_tokens);
  events_.add(
      AdmissionRejected{.engine_request_id = request.engine_request_id,
                        .reason = std::move(reason),
                        .lease = request.lease,
                        .emitted_tokens = static_cast<std::uint32_t>(request.emitted.size())});
  tenancies_.note_change(request.tenant);
}

}  // namespace leasehold
