/// The queue of rebinds that wait for memory, in order of arrival.
///
/// A rebind that finds no memory is refused, gets a place in the queue, and is retried by its
/// caller. While the caller retries, no later acquire gets the memory that the rebind waits for. A
/// place belongs to a tenant and the lease that is replaced, so a caller that reconnects finds its
/// place again. A place whose caller has not retried for kPlaceTimeout is dropped. Tenants share
/// the places (common/fair_shares.hpp).
///
/// Pure: time is an argument. Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "broker/books/ids.hpp"
#include "common/clock.hpp"
#include "common/fair_shares.hpp"
#include "common/ids.hpp"

namespace leasehold {

/// A waiting rebind, or an acquire that is compared with the waiting ones.
struct MemoryDemand {
  TenantId tenant;
  std::optional<LeaseId> replaces;  ///< None: an acquire that replaces no lease.
  AttachmentId worker;
  std::uint32_t extents = 0;
  bool is_scavenger = false;
};

/// The rebinds that come before a demand, and the extents that they wait for.
struct PlacesBefore {
  std::size_t count = 0;
  std::uint64_t extents = 0;
};

class RebindPlaces {
 public:
  /// Longer than a waiting caller takes to retry, even on a new connection.
  static constexpr Duration kPlaceTimeout = std::chrono::seconds(5);
  static constexpr std::size_t kMaxPlaces = 1024;

  /// `by_worker`: true if memory that one worker had cannot serve another worker. Only rebinds on
  /// the same worker are then counted.
  explicit RebindPlaces(bool by_worker) : by_worker_(by_worker), shares_(kMaxPlaces) {}

  /// Adds a place at the end, or extends the place that the demand has. False if the tenant's share
  /// of the places is used up. Precondition: the demand replaces a lease.
  bool keep(const MemoryDemand& demand, TimePoint now);
  bool has(const MemoryDemand& demand) const;
  /// Removes the place of a rebind that was granted or that no longer waits.
  void give_up(const TenantId& tenant, LeaseId replaces);
  /// Counts the places before the demand's own place, or all places if it has none. A scavenger's
  /// place counts only against other scavengers.
  PlacesBefore before(const MemoryDemand& demand, TimePoint now);
  std::size_t size() const { return places_.size(); }

 private:
  struct Place {
    MemoryDemand demand;
    TimePoint until;
  };
  void drop_old(TimePoint now);
  void erase(std::vector<Place>::iterator place);
  std::vector<Place>::iterator find(const MemoryDemand& demand);

  bool by_worker_;
  std::vector<Place> places_;  // the oldest first
  FairShares<TenantId> shares_;
};

}  // namespace leasehold
