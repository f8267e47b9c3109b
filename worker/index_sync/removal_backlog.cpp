#include "worker/index_sync/removal_backlog.hpp"

#include "worker/index_sync/index_answers.hpp"

namespace leasehold {

void RemovalBacklog::add_ended(const TenantId& tenant, const RequestId& id) {
  (void)ended_.push({.owner = tenant, .key = id});
  push_pending(tenant, id);
}

void RemovalBacklog::add_live(const RequestId& id) {
  (void)ended_.erase(id);
  (void)pending_.erase(id);
}

void RemovalBacklog::push_pending(const TenantId& tenant, const RequestId& id) {
  if (auto dropped = pending_.push({.owner = tenant, .key = id}))
    dropped_.push_back(std::move(dropped->key));
}

void RemovalBacklog::confirm(std::span<const RequestId> batch) {
  for (const RequestId& id : batch) (void)pending_.erase(id);
}

std::size_t RemovalBacklog::reconcile(std::span<const RequestId> listed) {
  std::size_t found = 0;
  for (const RequestId& each : listed) {
    for (const RequestId& id : possible_full_ids(each)) found += push_again(id);
  }
  return found;
}

bool RemovalBacklog::push_again(const RequestId& id) {
  const TenantId* tenant = ended_.owner_of(id);
  if (tenant == nullptr || pending_.contains(id)) return false;
  push_pending(*tenant, id);
  return true;
}

}  // namespace leasehold
