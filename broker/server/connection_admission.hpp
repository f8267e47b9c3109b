/// Decides which connections the broker keeps, so that no user locks the others out.
///
/// A new connection is charged to its user's rate before it may cost another user a place. Users
/// share the places (common/fair_shares.hpp); beyond its share, a user gets the place of the oldest
/// connection of the user that has the most, or else of its own oldest one. The last places are
/// reserved for operators and workers; operators have no share. A connection that holds a lease
/// keeps its place, and so does one of an operator or a worker. Any connection that makes no call
/// in time is closed.
///
/// Pure: time is an argument. Threads: one. Lifetime: `rates` outlives it.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "broker/books/ids.hpp"
#include "broker/server/rate_limits.hpp"
#include "common/clock.hpp"
#include "common/fair_shares.hpp"

namespace leasehold {

struct AdmissionLimits {
  std::size_t places = 1024;
  std::size_t reserved = 64;  ///< Of the places, for operators and workers.
  Duration first_call_timeout = std::chrono::seconds(10);
  Duration log_interval = std::chrono::seconds(10);
};

class ConnectionAdmission {
 public:
  ConnectionAdmission(RateLimits& rates, std::set<uid_t> worker_uids,
                      const AdmissionLimits& limits = {})
      : rates_(&rates),
        worker_uids_(std::move(worker_uids)),
        limits_(limits),
        places_(limits.places) {}

  /// What the limits did since the last report.
  struct Report {
    std::uint64_t refused = 0;  ///< New connections above the rate of their user, or without room.
    std::uint64_t displaced = 0;  ///< Lost their place to a new one.
    std::uint64_t silent = 0;     ///< Made no call in time.
    std::uint64_t bytes = 0;      ///< Left too much unread or unfinished.
    bool operator==(const Report&) const = default;
  };

  struct Admission {
    bool is_admitted = false;
    std::optional<ConnectionId> displaced;  ///< Loses its place to the new connection.
  };
  /// Ids grow, so the lowest of a user is its oldest.
  Admission connected(ConnectionId id, uid_t uid, TimePoint now);

  void called(ConnectionId id) {
    if (!std::exchange(connections_.at(id).has_called, true)) --silent_;
  }
  void holds_lease(ConnectionId id) { connections_.at(id).holds_lease = true; }
  /// Does nothing for an unknown connection.
  void closed(ConnectionId id);

  /// For the report: a connection was closed that left too much unread or unfinished.
  void count_excess() { ++report_.bytes; }
  /// For the report: a connection was refused that this class did not see.
  void count_refused() { ++report_.refused; }
  /// Nothing when no limit did anything, or less than `log_interval` after the last report.
  std::optional<Report> take_report(TimePoint now);

  /// True for operators and workers.
  bool may_use_reserve(uid_t uid) const;

  /// True while `take_silent` or `take_report` may have something later.
  bool has_pending_checks() const { return silent_ > 0 || report_ != Report{}; }

  /// Takes the connections that made no call within `first_call_timeout`.
  std::vector<ConnectionId> take_silent(TimePoint now);

 private:
  struct Connection {
    uid_t uid = 0;
    TimePoint first_call_due;
    bool has_called = false;
    bool holds_lease = false;
  };
  bool may_be_displaced(const Connection& connection) const;
  bool has_room_for(uid_t uid) const;
  std::optional<ConnectionId> displace_for(uid_t uid);

  RateLimits* rates_;
  std::set<uid_t> worker_uids_;
  AdmissionLimits limits_;
  FairShares<uid_t> places_;
  std::map<ConnectionId, Connection> connections_;
  std::size_t silent_ = 0;  // connections without a call
  Report report_;
  std::optional<TimePoint> reported_at_;
};

}  // namespace leasehold
