/// Limits the time that copies of moving requests take. Every request waits for a copy, so a copy
/// is followed by a pause in proportion to it.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <map>

#include "common/clock.hpp"
#include "common/errc.hpp"
#include "common/ids.hpp"

namespace leasehold {

class MovePauses {
 public:
  /// Errors: QueueFull with the time until the tenant may move a request.
  Result<void> check(const TenantId& tenant, TimePoint now);
  /// The tenant's copy took from `began` to `ended`.
  void note(const TenantId& tenant, TimePoint began, TimePoint ended);

 private:
  std::map<TenantId, TimePoint> next_;  // of tenants that moved a request
  TimePoint next_of_any_;
};

}  // namespace leasehold
