/// Broker → worker: a text needs memory that adapters hold. The rules for all messages are in
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ipc/control/messages/common.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::wire {

/// Notification `adapters.yield`: a text finds no memory. Of these leases, the worker closes those
/// whose adapter is not pinned and that no sequence uses, until they held `size_bytes`: those of
/// `tenant` first, the least recently used first.
struct AdaptersYield : Message<AdaptersYield> {
  static constexpr std::string_view kMethod = "adapters.yield";
  static constexpr std::size_t kMaxLeases = 1 << 12;
  TenantId tenant;              ///< Whose text it is.
  std::vector<LeaseId> leases;  ///< 0 … kMaxLeases
  std::uint64_t size_bytes = 0;
};

}  // namespace leasehold::wire
