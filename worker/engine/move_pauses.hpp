/// Limits the share of time spent on copies of moving requests. Every running request waits while a
/// copy is made, so after a copy no other may begin for a multiple of its duration.
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
  /// Records that the tenant's copy took from `began` to `ended`.
  void note(const TenantId& tenant, TimePoint began, TimePoint ended);

 private:
  std::map<TenantId, TimePoint> next_;  // earliest next copy, by tenant
  TimePoint next_of_any_;
};

}  // namespace leasehold
