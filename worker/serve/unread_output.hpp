/// Limits the output that clients leave unread: per connection, and per tenant as a share of the
/// total (common/fair_shares.hpp).
///
/// Threads: that of the tenants' sockets.
#pragma once

#include <memory>
#include <optional>

#include "common/ids.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold {

/// Beyond this limit the streams of the connection end. The ends need room too, so the connection
/// itself is closed at twice the limit.
inline constexpr std::size_t kMaxUnreadOutputBytesPerConnection = 256 << 10;
inline constexpr std::size_t kMaxUnreadOutputBytes = 64 << 20;  ///< Limit for all tenants together.

class UnreadOutput {
 public:
  /// The meter with which every peer of the tenant counts its output.
  std::shared_ptr<control::QueueMeter> meter_of(const TenantId& tenant) {
    return shares_.meter_of(tenant);
  }

  /// Returns QueueFull when a connection of the tenant with that many unread bytes may get no more
  /// output.
  std::optional<Error> excess(const TenantId& tenant, std::size_t connection_bytes) const;

 private:
  control::QueueShares<TenantId> shares_{kMaxUnreadOutputBytes};
};

}  // namespace leasehold
