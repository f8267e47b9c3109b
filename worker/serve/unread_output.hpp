/// Bounds the output that clients leave unread: per connection, and per tenant as a share of all
/// (common/fair_shares.hpp).
///
/// Threads: that of the tenants' sockets.
#pragma once

#include <memory>
#include <optional>

#include "common/ids.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold {

/// Beyond it the streams of the connection end. They need room for their ends, so the connection
/// itself ends at twice as much.
inline constexpr std::size_t kMaxUnreadOutputBytesPerConnection = 256 << 10;
inline constexpr std::size_t kMaxUnreadOutputBytes = 64 << 20;  ///< Of all tenants.

class UnreadOutput {
 public:
  /// Every peer of the tenant counts its output there.
  std::shared_ptr<control::QueueMeter> meter_of(const TenantId& tenant) {
    return shares_.meter_of(tenant);
  }

  /// QueueFull when a connection of the tenant with that many unread bytes gets no more output.
  std::optional<Error> excess(const TenantId& tenant, std::size_t connection_bytes) const;

 private:
  control::QueueShares<TenantId> shares_{kMaxUnreadOutputBytes};
};

}  // namespace leasehold
