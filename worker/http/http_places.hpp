/// Decides which connections the HTTP server keeps.
///
/// A connection belongs to its source until a key was accepted on it, then to the tenant of the key
/// that it showed last: a proxy sends requests of several tenants on one connection. Sources and
/// tenants have places of their own, each shared by owner (common/fair_shares.hpp). A source beyond
/// its share loses its oldest connection to the new one; a tenant beyond its share gets QueueFull.
/// Tenants also share the bytes of the bodies that are read or served.
///
/// Memory: 40 KiB for each of 3 584 connections, and a few times the 64 MiB of bodies: a request is
/// kept until its text is complete, so that it can be submitted again.
///
/// Pure: time is an argument. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/fair_shares.hpp"
#include "common/ids.hpp"
#include "common/token_bucket.hpp"
#include "ipc/http/http_source.hpp"

namespace leasehold::http {

struct PlaceLimits {
  std::size_t unauthenticated_places = 1024;  ///< 512 for one source alone.
  std::size_t tenant_places = 2560;           ///< 1 280 for one tenant alone.
  std::size_t body_bytes = 64 << 20;
  /// Keys that are not known, and that a source may show at once; more wait for their turn.
  Rate key_checks{.per_second = 50, .burst = 100};
  std::size_t max_sources = 4096;  ///< With a remembered rate.
};

class Places {
 public:
  using ConnectionId = std::uint64_t;  ///< Ids grow, so the lowest is the oldest.

  explicit Places(const PlaceLimits& limits = {})
      : limits_(limits),
        unauthenticated_(limits.unauthenticated_places),
        tenants_(limits.tenant_places),
        bodies_(limits.body_bytes) {}

  /// What becomes of a new connection.
  struct Admission {
    bool accepted = false;
    std::optional<ConnectionId> displaced{};  ///< Loses its place.
  };
  Admission connected(ConnectionId id, const Source& source);
  /// The next request on the connection comes from this source: a trusted proxy says so. Without a
  /// tenant the connection belongs to the source from now on. Not accepted: it lost its place.
  Admission came_from(ConnectionId id, const Source& source);
  /// The connection belongs to this tenant from now on. Precondition: it holds no body. Errors:
  /// QueueFull beyond the tenant's share.
  Result<void> authenticated(ConnectionId id, const TenantId& tenant);
  /// Charges a body to the tenant of the connection. Errors: QueueFull beyond the tenant's share.
  Result<void> take_body(ConnectionId id, std::size_t bytes);
  /// The request of the connection is over.
  void give_back_bodies(ConnectionId id);
  void closed(ConnectionId id);

  /// Zero: the key that this connection shows, which is not known (known_keys.hpp), may be checked
  /// now. Otherwise ask again so much later.
  Duration pace_key(ConnectionId id, TimePoint now);

 private:
  struct Place {
    Source source;
    std::optional<TenantId> tenant{};
    std::size_t body_bytes = 0;
    bool has_paid = false;  ///< For the check of the key that it shows.
  };
  void give_back(const Place& place);
  Admission take_place(const Source& source);

  PlaceLimits limits_;
  FairShares<Source> unauthenticated_;
  FairShares<TenantId> tenants_;
  FairShares<TenantId> bodies_;  // in bytes
  std::map<ConnectionId, Place> places_;
  std::map<Source, TokenBucket> checks_;
};

}  // namespace leasehold::http
