/// Counts the tokens served to each tenant, divided by its weight. The tenant with the lowest
/// counter is served next.
///
/// Source: Sheng et al., "Fairness in Serving Large Language Models" (OSDI '24), algorithm 4
/// (weighted Virtual Token Counter). The cost of a computed row is its work (row_work.hpp).
///
/// A tenant is *active* while it has requests. When it becomes active, its counter rises to the
/// least counter of the active tenants: idle time gives no credit. A counter outlives the tenant's
/// leases while it is above that minimum, so that a new lease gives no credit either.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <map>

#include "common/ids.hpp"

namespace leasehold {

class TokenCounters {
 public:
  using Count = std::uint64_t;  ///< One token of a tenant with weight 1 counts kUnit.
  static constexpr Count kUnit = Count{1} << 20;

  /// Precondition: weight > 0.
  static constexpr Count cost(std::uint64_t tokens, std::uint32_t weight) {
    return tokens * kUnit / weight;
  }

  /// Returns the count of an active tenant, at an address that is stable while the tenant is
  /// active; null for an inactive tenant.
  Count* set_active(const TenantId& tenant, bool active);

  /// Number of tenants whose counter is kept.
  std::size_t size() const { return accounts_.size(); }

 private:
  struct Account {
    Count count = 0;
    bool active = false;
  };
  Count least_active() const;
  void forget_low();

  std::map<TenantId, Account> accounts_;
  Count idle_level_ = 0;  // the counter of the tenant that was last to become inactive
};

}  // namespace leasehold
