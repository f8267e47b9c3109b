/// Decides which connections a worker keeps and how fast it reads from them.
///
///   connected ──► unauthenticated ──authenticate──► connection of a tenant ──► closed
///                      │                                   └── no request runs, and: its lease has
///                      │                                       ended, or its tenant needs the
///                      │                                       place
///                      └── deadline, or a newer one of its uid needs the place ──► closed
///
/// A connection belongs to the uid of its peer until it has shown a lease token, then to the tenant
/// of that token. There are separate places for unauthenticated connections and for tenants'
/// connections, each shared by owner (common/fair_shares.hpp). A new unauthenticated connection
/// always gets a place: when its uid has used up its share, the oldest unauthenticated connection
/// of the uid is closed. A client that sends its token at once keeps its connection. When a tenant
/// has used up its share, a connection of the tenant without a request is closed: one whose lease
/// has ended, or else the one unused for longest.
///
/// Pure: time is an argument. Threads: one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "common/fair_shares.hpp"
#include "common/ids.hpp"
#include "common/token_bucket.hpp"
#include "ipc/control/tokens/lease_token.hpp"

namespace leasehold {

struct ConnectionLimits {
  std::size_t unauthenticated_places = 128;
  std::size_t tenant_places = 1024;
  Duration authentication_timeout = std::chrono::seconds(5);
  /// How long a tenant's connection stays open without a request after its lease has ended.
  Duration ended_lease_timeout = std::chrono::seconds(10);
  /// Weight of the lines (control::weight_of_line) of all unauthenticated connections of one uid; a
  /// new connection weighs as much as a short line. When a connection authenticates, its charged
  /// lines are charged to its tenant instead, if the tenant is within its own rate.
  Rate unauthenticated_lines{.per_second = 1'000, .burst = 2'000};
  /// While the wait is this long, further lines are not charged, so that a user who stops sending
  /// is served again soon.
  Duration max_unauthenticated_wait = std::chrono::seconds(1);
  /// Weight of the lines of all connections of one tenant: two of the longest lines a second.
  Rate tenant_lines{.per_second = 2'048, .burst = 2'048};
  Duration log_interval = std::chrono::seconds(10);
};

class ConnectionLimiter {
 public:
  /// Ids increase, so the lower of two ids is the older connection.
  using ConnectionId = std::uint64_t;

  /// Counts of connections closed or refused since the last report.
  struct Report {
    std::uint64_t displaced = 0;  ///< Unauthenticated connections closed in favour of newer ones.
    std::uint64_t timed_out = 0;  ///< Connections that did not authenticate in time.
    std::uint64_t refused = 0;    ///< Authentications beyond the tenant's share.
    /// Tenants' connections closed after the end of their lease or to free their place.
    std::uint64_t unused = 0;
    bool operator==(const Report&) const = default;
  };

  struct Use {
    bool has_requests = false;  ///< Requests wait or run.
    bool lease_is_live = false;
  };
  using UseOf = std::function<Use(ConnectionId, LeaseId)>;

  explicit ConnectionLimiter(const ConnectionLimits& limits = {})
      : limits_(limits),
        unauthenticated_(limits.unauthenticated_places),
        tenants_(limits.tenant_places) {}

  /// Gives a new connection a place. Returns the unauthenticated connection to close for it, if
  /// any.
  std::optional<ConnectionId> connected(ConnectionId id, uid_t uid, TimePoint now);

  /// Assigns the connection to the tenant of this live lease. Returns the tenant's connection to
  /// close for it, if any.
  /// Errors: QueueFull when the tenant has used up its share and all its connections have requests;
  /// BadToken when the connection belongs to another tenant.
  Result<std::optional<ConnectionId>> authenticated(ConnectionId id, const LeaseClaim& claim,
                                                    TimePoint now, const UseOf& use_of);
  /// Records that a request under this live lease arrived on a tenant's connection.
  void used(ConnectionId id, LeaseId lease, TimePoint now);

  /// The tenant of a connection; null for an unauthenticated connection.
  const TenantId* tenant_of(ConnectionId id) const;
  /// The lease of the newest token that a tenant's connection showed.
  LeaseId lease_of(ConnectionId id) const;

  /// Removes a connection; does nothing for an unknown one.
  void closed(ConnectionId id);

  /// The delay before a line of this weight is read.
  Duration pace(ConnectionId id, std::size_t weight, TimePoint now);

  /// The authentication deadline of the oldest unauthenticated connection.
  std::optional<TimePoint> next_deadline() const;
  /// Takes the unauthenticated connections whose deadline has passed.
  std::vector<ConnectionId> take_overdue(TimePoint now);
  /// Takes the connections of tenants whose `ended_lease_timeout` has passed. The timeout begins
  /// with the first call that finds the lease ended and no request, so call it often.
  std::vector<ConnectionId> take_ended(TimePoint now, const UseOf& use_of);

  /// Returns nothing when all counts are zero, or less than `log_interval` after the last report.
  std::optional<Report> take_report(TimePoint now);

 private:
  struct Unauthenticated {
    uid_t uid = 0;
    TimePoint deadline;
    std::size_t charged = 0;  ///< Weight of its lines charged to its uid.
  };
  using UnauthenticatedConnections = std::map<ConnectionId, Unauthenticated>;
  struct TenantPlace {
    TenantId tenant;
    LeaseId lease;  ///< Lease of the newest token that was shown.
    TimePoint used_at;
    std::optional<TimePoint> ended_at;  ///< Time at which take_ended found the lease ended.
  };
  using TenantPlaces = std::map<ConnectionId, TenantPlace>;
  std::optional<ConnectionId> displace_for(uid_t uid);
  std::optional<ConnectionId> displace_for(const TenantId& tenant, const UseOf& use_of);
  void forget_unauthenticated(UnauthenticatedConnections::iterator unauthenticated);
  void forget_place(TenantPlaces::iterator place);
  Duration charge_unauthenticated(Unauthenticated& unauthenticated, std::size_t weight,
                                  TimePoint now);
  void charge_tenant_instead(const Unauthenticated& unauthenticated, const TenantId& tenant,
                             TimePoint now);
  template <class Owner>
  TokenBucket& bucket(std::map<Owner, TokenBucket>& buckets, const Owner& owner, const Rate& rate,
                      TimePoint now);

  ConnectionLimits limits_;
  FairShares<uid_t> unauthenticated_;
  FairShares<TenantId> tenants_;
  UnauthenticatedConnections unauthenticated_by_id_;
  TenantPlaces place_by_id_;
  std::map<uid_t, TokenBucket> uid_buckets_;  ///< Never shrinks: a machine has few users.
  /// Never shrinks: the broker's admission of tenants bounds it.
  std::map<TenantId, TokenBucket> tenant_buckets_;
  Report report_;
  std::optional<TimePoint> reported_at_;
};

}  // namespace leasehold
