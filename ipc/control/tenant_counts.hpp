/// What tenants were served, with a bounded number of names: a time series costs the observer
/// memory for as long as it keeps history.
///
/// A tenant has a place of its own while it is among the busiest; the others are counted together.
/// A count never falls: a tenant that gets a place begins there with 0, and what was counted for it
/// together with others stays there. Pure: time is an argument. Threads: one.
#pragma once

#include <map>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/messages_worker.hpp"

namespace leasehold {

class TenantCounts {
 public:
  static constexpr std::size_t kNamedTenants = 32;
  /// The name of those without a place; a tenant of this name gets none.
  static constexpr const char* kOther = "other";

  explicit TenantCounts(std::size_t places = kNamedTenants) : max_places_(places) {}

  void add(const wire::TenantServed& served, TimePoint now);

  /// By name; at most one more than places. kOther is missing while it has nothing.
  std::vector<wire::TenantServed> counts() const;

 private:
  struct Place {
    wire::TenantServed served;
    double recent = 0;  // tokens, halved every kHalfLife
  };
  static constexpr Duration kHalfLife = std::chrono::minutes(1);
  /// How much busier a tenant is than the one whose place it takes. Above 1, so that equally busy
  /// ones do not take turns.
  static constexpr double kLead = 2;
  static constexpr std::size_t kMaxOutsiders = 4096;

  void decay(TimePoint now);
  bool take_place(const wire::TenantServed& served, double recent);

  std::size_t max_places_;
  std::map<TenantId, Place> places_;
  std::map<TenantId, double> outsiders_;  // what is recent of tenants without a place
  wire::TenantServed others_;
  TimePoint decayed_at_;
};

}  // namespace leasehold
