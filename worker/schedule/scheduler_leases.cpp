// The part of Scheduler that adds, grows, shrinks and ends leases.
#include <algorithm>

#include "common/expects.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

void Scheduler::add_lease(TenancyConfig config) {
  expects(!has_lease(config.lease), "a lease is added once");
  const LeaseId lease = config.lease;
  tenancies_[lease].config = std::move(config);
}

void Scheduler::set_quota(LeaseId lease, std::uint32_t max_concurrent, std::uint32_t max_blocks) {
  const auto found = tenancies_.find(lease);
  if (found == tenancies_.end()) return;
  found->second.config.max_concurrent = max_concurrent;
  found->second.config.max_blocks = max_blocks;
}

void Scheduler::add_extent(LeaseId lease, ExtentId extent, std::uint32_t blocks) {
  expects(has_lease(lease), "an extent belongs to a known lease");
  tenancies_.at(lease).pool.add_extent(extent, blocks);
}

void Scheduler::deny_growth(LeaseId lease) {
  const auto found = tenancies_.find(lease);
  if (found != tenancies_.end()) found->second.growth_denied = true;
}

std::vector<ExtentId> Scheduler::remove_free_extents(LeaseId lease, std::uint32_t count) {
  const auto found = tenancies_.find(lease);
  return found == tenancies_.end() ? std::vector<ExtentId>{}
                                   : found->second.pool.remove_free_extents(count);
}

void Scheduler::end_lease(LeaseId lease, const Completed& how) {
  if (!has_lease(lease)) return;
  std::vector<Sequence*> ending;
  for (const auto& sequence : running_) {
    if (sequence->request.lease == lease) ending.push_back(sequence.get());
  }
  for (Sequence* sequence : ending) {
    end_sequence(*sequence, how);
  }
  end_waiting(tenancies_.at(lease), how);
  tenancies_.erase(lease);
}

void Scheduler::reject_waiting(LeaseId lease, const Error& why) {
  Tenancy& tenancy = tenancies_.at(lease);
  for (const PromptRequest& request : tenancy.waiting)
    rejected_.push_back({request.engine_request_id, why});
  tenancy.waiting.clear();
}

void Scheduler::end_all(const Error& error) {
  const Completed how{.reason = CompletionReason::EngineError, .error = error};
  while (!running_.empty()) end_sequence(*running_.back(), how);
  for (auto& [lease, tenancy] : tenancies_) end_waiting(tenancy, how);
}

void Scheduler::end_waiting(Tenancy& tenancy, const Completed& how) {
  for (const PromptRequest& request : tenancy.waiting) {
    Completed completed = how;
    completed.engine_request_id = request.engine_request_id;
    completed.emitted_tokens = static_cast<std::uint32_t>(request.emitted.size());
    completed_.push_back(std::move(completed));
  }
  tenancy.waiting.clear();
}

std::vector<LeaseId> Scheduler::leases() const {
  std::vector<LeaseId> ids;
  for (const auto& [lease, tenancy] : tenancies_) ids.push_back(lease);
  return ids;
}

}  // namespace leasehold
