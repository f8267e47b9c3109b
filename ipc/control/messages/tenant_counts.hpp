/// Counts what tenants were served, under a bounded number of names: each time series costs the
/// monitoring system memory for as long as it keeps history.
///
/// The busiest tenants have a place each; all others are counted together. A count of a place or of
/// the others never falls: a tenant that gets a place begins with 0, and its earlier counts stay
/// with the others. Pure: time is an argument. Threads: one.
#pragma once

#include <map>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/messages/worker.hpp"

namespace leasehold {

class TenantCounts {
 public:
  static constexpr std::size_t kNamedTenants = 32;
  /// The common name of tenants without a place; a tenant of this name never gets one.
  static constexpr const char* kOther = "other";

  explicit TenantCounts(std::size_t places = kNamedTenants) : max_places_(places) {}

  void add(const wire::TenantServed& served, TimePoint now);

  /// The counts in order of names, then those of kOther, which are missing while they have no
  /// tokens.
  std::vector<wire::TenantServed> counts() const;

 private:
  struct Place {
    wire::TenantServed served;
    double recent = 0;  // tokens, halved every kHalfLife
  };
  static constexpr Duration kHalfLife = std::chrono::minutes(1);
  /// How many times busier a tenant must be than the one that it displaces. Above 1, so that
  /// equally busy tenants do not displace each other in turn.
  static constexpr double kLead = 2;
  static constexpr std::size_t kMaxOutsiders = 4096;

  void decay(TimePoint now);
  bool take_place(const wire::TenantServed& served, double recent);

  std::size_t max_places_;
  std::map<TenantId, Place> places_;
  std::map<TenantId, double> outsiders_;  // the recent tokens of tenants without a place
  wire::TenantServed others_;
  TimePoint decayed_at_;
};

}  // namespace leasehold
