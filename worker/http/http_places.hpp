/// Decides which connections the HTTP door keeps.
///
/// A connection belongs to its source until a key was accepted on it, then to the key's tenant.
/// Sources and tenants have places of their own, each shared by owner (common/fair_shares.hpp). A
/// source beyond its share loses its oldest connection to the new one; a tenant beyond its share
/// gets QueueFull.
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

namespace leasehold::http {

/// "10.1.2.3", the /64 of an IPv6 address, or "uid:1000" on a Unix socket.
using Source = std::string;

struct PlaceLimits {
  std::size_t stranger_places = 128;
  std::size_t tenant_places = 256;
  /// Keys that a source may show; more wait for their turn.
  Rate key_checks{.per_second = 50, .burst = 100};
  std::size_t max_sources = 4096;  ///< With a remembered rate.
};

class Places {
 public:
  using ConnectionId = std::uint64_t;  ///< Ids grow, so the lowest is the oldest.

  explicit Places(const PlaceLimits& limits = {})
      : limits_(limits), strangers_(limits.stranger_places), tenants_(limits.tenant_places) {}

  /// What becomes of a new connection.
  struct Admission {
    bool accepted = false;
    std::optional<ConnectionId> displaced{};  ///< Loses its place.
  };
  Admission connected(ConnectionId id, const Source& source);
  /// Errors: QueueFull beyond the tenant's share; BadToken for a key of another tenant than the one
  /// before.
  Result<void> authenticated(ConnectionId id, const TenantId& tenant);
  void closed(ConnectionId id);

  /// Zero: the key that this connection shows may be checked now. Otherwise ask again so much
  /// later.
  Duration pace_key(ConnectionId id, TimePoint now);

 private:
  struct Place {
    Source source;
    std::optional<TenantId> tenant{};
  };
  PlaceLimits limits_;
  FairShares<Source> strangers_;
  FairShares<TenantId> tenants_;
  std::map<ConnectionId, Place> places_;
  std::map<Source, TokenBucket> checks_;
};

}  // namespace leasehold::http
