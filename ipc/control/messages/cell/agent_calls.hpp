/// Worker → agent of a cell. The rules for all messages are in ipc/control/messages.hpp.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.hpp"
#include "ipc/control/messages/cell/host_name.hpp"
#include "ipc/control/messages/common.hpp"

namespace leasehold::wire {

/// `key.resolve`: asks for a key that the broker does not have. After the reply the broker has it,
/// and this host a part of its tenant's limits. It may be repeated. Reply: Empty. Errors: BadToken
/// for a key that the cell does not have; QuotaConcurrent while other hosts use the tenant's
/// limits; CellLost, TimedOut.
struct KeyResolve : Message<KeyResolve> {
  static constexpr std::string_view kMethod = "key.resolve";
  std::string hash;  ///< hash_of_api_key.
  /// The host that wrote the text of the request so far, and may still run it.
  std::optional<HostName> moved_from;
};

/// `part.want`, a notification: a request of this tenant was refused because this host's part of
/// its limits is used up, or its text has moved here. The agent looks for a larger part, at most
/// once per kPause and tenant. A worker notifies it at most once per kPause, tenant and host.
struct PartWant : Message<PartWant> {
  static constexpr std::string_view kMethod = "part.want";
  static constexpr Duration kPause = std::chrono::milliseconds(200);
  TenantId tenant;
  std::optional<HostName> moved_from;  ///< See KeyResolve.
};

}  // namespace leasehold::wire
