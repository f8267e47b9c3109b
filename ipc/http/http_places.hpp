/// Decides which connections the HTTP server keeps.
///
/// Each connection occupies a place. The place belongs to the connection's source until a key is
/// accepted, then to the tenant of the latest key, because a proxy sends requests of several
/// tenants on one connection. Sources and tenants have separate pools of places, each shared fairly
/// by its owners (common/fair_shares.hpp). A new connection beyond its source's share displaces the
/// oldest one of that source; a tenant beyond its share gets QueueFull. Tenants also share the
/// bytes of the bodies that are being read or served.
///
/// Memory: 40 KiB for each of 3 584 connections, and a few times 64 MiB for bodies, because a
/// request is kept until its text is complete, so that it can be submitted again.
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
  std::size_t unauthenticated_places = 1024;  ///< A single source gets at most 512.
  std::size_t tenant_places = 2560;           ///< A single tenant gets at most 1 280.
  std::size_t body_bytes = 64 << 20;
  /// Rate at which each source may present unknown keys; further ones wait.
  Rate key_checks{.per_second = 50, .burst = 100};
  std::size_t max_sources = 4096;  ///< Sources whose rate is remembered.
};

class Places {
 public:
  using ConnectionId = std::uint64_t;  ///< Ids grow, so the lowest is the oldest.

  explicit Places(const PlaceLimits& limits = {})
      : limits_(limits),
        unauthenticated_(limits.unauthenticated_places),
        tenants_(limits.tenant_places),
        bodies_(limits.body_bytes) {}

  /// The decision on a connection.
  struct Admission {
    bool accepted = false;
    std::optional<ConnectionId> displaced{};  ///< The connection that loses its place.
  };
  Admission connected(ConnectionId id, const Source& source);
  /// Notes that the next request on the connection comes from this source, which may be one that a
  /// trusted proxy names. If the connection has no tenant yet, its place moves to this source. Not
  /// accepted: the connection has lost its place.
  Admission note_source(ConnectionId id, const Source& source);
  /// Moves the connection's place to this tenant. Precondition: the connection holds no body.
  /// Errors: QueueFull beyond the tenant's share, or if the connection has lost its place.
  Result<void> authenticated(ConnectionId id, const TenantId& tenant);
  /// Charges a body to the tenant of the connection. Errors: QueueFull beyond the tenant's share,
  /// or if the connection has lost its place.
  Result<void> take_body(ConnectionId id, std::size_t bytes);
  /// Returns the bytes of the connection's bodies, because its request is over.
  void release_bodies(ConnectionId id);
  void closed(ConnectionId id);

  /// How long the check of the connection's unknown key (known_keys.hpp) must wait. Zero: the key
  /// may be checked now. Otherwise call again after the wait.
  Duration pace_key(ConnectionId id, TimePoint now);

 private:
  struct Place {
    Source source;
    std::optional<TenantId> tenant{};
    std::size_t body_bytes = 0;
    bool was_charged = false;  ///< Its source's rate was charged for its key.
  };
  void give_back(const Place& place);
  Admission take_place(const Source& source);

  PlaceLimits limits_;
  FairShares<Source> unauthenticated_;
  FairShares<TenantId> tenants_;
  FairShares<TenantId> bodies_;  // amounts in bytes
  std::map<ConnectionId, Place> places_;
  std::map<Source, TokenBucket> checks_;
};

}  // namespace leasehold::http
