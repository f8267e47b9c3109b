#include "worker/schedule/tenants/token_counters.hpp"

#include <algorithm>

namespace leasehold {

TokenCounters::Count* TokenCounters::set_active(const TenantId& tenant, bool active) {
  Account& account = accounts_[tenant];
  Count* const count = active ? &account.count : nullptr;
  if (account.active == active) return count;
  if (active) account.count = std::max(account.count, least_active());
  account.active = active;
  if (!active) idle_level_ = account.count;
  forget_low();
  return count;
}

TokenCounters::Count TokenCounters::least_active() const {
  const Account* least = nullptr;
  for (const auto& [tenant, account] : accounts_) {
    if (account.active && (least == nullptr || account.count < least->count)) least = &account;
  }
  return least == nullptr ? idle_level_ : least->count;
}

/// Drops the counters of inactive tenants that are not above the least active counter, because they
/// would rise to it on return.
void TokenCounters::forget_low() {
  const Count least = least_active();
  std::erase_if(accounts_, [least](const auto& entry) {
    return !entry.second.active && entry.second.count <= least;
  });
}

}  // namespace leasehold
