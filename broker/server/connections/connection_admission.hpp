/// Decides which connections the broker keeps, so that no user can lock out the others.
///
/// A new connection is charged to its user's rate limit before it may displace another one. Users
/// share the places (common/fair_shares.hpp). When a user's share is used up, its new connection
/// displaces the oldest connection of the user that has the most connections, or else the user's
/// own oldest connection. The last places are reserved for operators and workers; the shares do not
/// limit operators. A connection that holds a lease is not displaced, and neither is a connection
/// of an operator or a worker. Any connection that makes no call in time is closed.
///
/// Pure: time is an argument. Threads: one. Lifetime: `rates` outlives this object.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "broker/books/ids.hpp"
#include "broker/server/connections/rate_limits.hpp"
#include "common/clock.hpp"
#include "common/fair_shares.hpp"

namespace leasehold {

struct AdmissionLimits {
  std::size_t places = 1024;
  std::size_t reserved = 64;  ///< Places reserved for operators and workers.
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
    /// New connections that exceeded their user's rate or found no place.
    std::uint64_t refused = 0;
    std::uint64_t displaced = 0;  ///< Connections that lost their place to a new one.
    std::uint64_t silent = 0;     ///< Connections that made no call in time.
    std::uint64_t bytes = 0;      ///< Connections with too much unread output or unfinished input.
    bool operator==(const Report&) const = default;
  };

  struct Admission {
    bool is_admitted = false;
    std::optional<ConnectionId> displaced;  ///< The connection that loses its place to the new one.
  };
  /// Admits or refuses a new connection. Precondition: ids increase, so that a user's lowest id is
  /// its oldest connection.
  Admission connected(ConnectionId id, uid_t uid, TimePoint now);

  void called(ConnectionId id) {
    if (!std::exchange(connections_.at(id).has_called, true)) --silent_;
  }
  void holds_lease(ConnectionId id) { connections_.at(id).holds_lease = true; }
  /// Does nothing for an unknown connection.
  void closed(ConnectionId id);

  /// Counts, for the report, a connection that was closed because of too much unread output or
  /// unfinished input.
  void count_excess() { ++report_.bytes; }
  /// Counts, for the report, a connection that was refused without a call of `connected`.
  void count_refused() { ++report_.refused; }
  /// Returns nothing if no limit took effect, or less than `log_interval` after the last report.
  std::optional<Report> take_report(TimePoint now);

  /// True for operators and workers.
  bool may_use_reserve(uid_t uid) const;

  /// True while `take_silent` or `take_report` may have something later.
  bool has_pending_checks() const { return silent_ > 0 || report_ != Report{}; }

  /// Removes and returns the connections that made no call within `first_call_timeout`.
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
