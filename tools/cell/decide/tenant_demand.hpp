/// What a host could use of a tenant's limits, by the requests that it has.
///
/// The demand rises at once and falls after ten seconds, and is a power of two. So a tenant whose
/// requests come and go causes few writes to etcd. Time is an argument. Threads: one.
#pragma once

#include <optional>

#include "common/clock.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

class TenantDemand {
 public:
  /// A tenant without requests for this time returns its part.
  static constexpr Duration kIdle = std::chrono::seconds(10);

  /// `requests`: running and waiting ones, from `now` on.
  void seen(std::uint32_t requests, TimePoint now);
  /// When the demand falls if `seen` is called again then. Nothing: the requests keep it up.
  std::optional<TimePoint> falls_at() const;
  /// The host may run nothing at `now`, so this time is not idle.
  void hold(TimePoint now) { since_ = now; }
  /// Zero without requests; otherwise the requests that the host has, and of the rest all that the
  /// tenant has (TenantPart::wants).
  Share share() const;

 private:
  std::uint32_t level_ = 0;   // 0 or a power of two
  std::uint32_t newest_ = 0;  // the level of the newest requests
  TimePoint since_;           // when level_ was last reached
};

}  // namespace leasehold::cell
