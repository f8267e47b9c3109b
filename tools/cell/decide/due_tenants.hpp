/// Which of many tenants are due for a step, and when the next one is. A tenant that is not due
/// costs nothing. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "tools/cell/decide/names.hpp"

namespace leasehold::cell {

class DueTenants {
 public:
  /// Sets when the tenant is due; nothing: it is not due.
  void set(const TenantId& tenant, std::optional<TimePoint> due) {
    const auto known = due_.find(tenant);
    if (known != due_.end()) {
      queue_.erase({known->second, tenant});
      due_.erase(known);
    }
    if (!due) return;
    due_.emplace(tenant, *due);
    queue_.emplace(*due, tenant);
  }
  std::optional<TimePoint> next() const {
    return queue_.empty() ? std::nullopt : std::optional(queue_.begin()->first);
  }
  /// The tenants that are due at `now`, in the order of their times. They are not due any more.
  std::vector<TenantId> take(TimePoint now) {
    std::vector<TenantId> taken;
    while (!queue_.empty() && queue_.begin()->first <= now) {
      taken.push_back(queue_.begin()->second);
      due_.erase(taken.back());
      queue_.erase(queue_.begin());
    }
    return taken;
  }

 private:
  std::set<std::pair<TimePoint, TenantId>> queue_;
  std::map<TenantId, TimePoint> due_;
};

}  // namespace leasehold::cell
