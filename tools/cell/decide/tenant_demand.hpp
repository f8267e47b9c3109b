/// What a host could use of a tenant's limits, by the requests that it has.
///
/// The demand rises at once and falls after ten seconds, and is a power of two. So a tenant whose
/// requests come and go causes few writes to etcd. Time is an argument. Threads: one.
#pragma once

#include "common/clock.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

class TenantDemand {
 public:
  /// A tenant without requests for this time returns its part.
  static constexpr Duration kIdle = std::chrono::seconds(10);

  /// `requests`: running and waiting ones, at `now`.
  void seen(std::uint32_t requests, TimePoint now);
  /// Zero without requests; otherwise all limits per host, but only the requests that it has.
  Share of(const Share& limits) const;

 private:
  std::uint32_t level_ = 0;  // 0 or a power of two
  TimePoint since_;          // when the level was last reached
};

}  // namespace leasehold::cell
