/// The places of rebinds that wait for memory, in the order in which they came.
///
/// A rebind that finds no memory is refused, keeps a place and asks again: as long as it does, no
/// acquire that came later gets the memory that it waits for. A place belongs to a tenant and the
/// lease that is replaced, so a caller whose connection broke finds it again. One that is not
/// asked for again is given up after kKept. Tenants share the places (common/fair_shares.hpp).
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

/// A rebind that waits, or an acquire whose turn it may be.
struct MemoryDemand {
  TenantId tenant;
  std::optional<LeaseId> replaces;  ///< None: an acquire that replaces no lease.
  AttachmentId worker;
  std::uint32_t extents = 0;
  bool is_scavenger = false;
};

/// What others wait for before a demand.
struct PlacesBefore {
  std::size_t count = 0;
  std::uint64_t extents = 0;
};

class RebindPlaces {
 public:
  /// Longer than a waiting caller takes to ask again, also on a new connection.
  static constexpr Duration kKept = std::chrono::seconds(5);
  static constexpr std::size_t kMostPlaces = 1024;

  /// `by_worker`: memory that one worker had serves no other, so only its rebinds count.
  explicit RebindPlaces(bool by_worker) : by_worker_(by_worker), shares_(kMostPlaces) {}

  /// Takes a place at the end, or keeps the one that the demand has. False if the tenant's share of
  /// the places is used up. Precondition: it replaces a lease.
  bool keep(const MemoryDemand& demand, TimePoint now);
  bool has(const MemoryDemand& demand) const;
  /// The rebind was granted, or does not wait any more.
  void give_up(const TenantId& tenant, LeaseId replaces);
  /// The places before the demand's own, or all. A scavenger's place is before other scavengers
  /// only.
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
