/// What each host of a cell has of the tenants' limits, as the ledgers say. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tools/cell/decide/ledger.hpp"

namespace leasehold::cell {

struct HostParts {
  std::uint64_t tenants = 0;   ///< Of whose limits the host has a part.
  std::uint64_t requests = 0;  ///< In these parts.
};

struct AllParts {
  std::map<PartOwner, HostParts> by_owner;  ///< Has hosts that are no longer members, too.
  std::vector<Error> problems;              ///< One for each ledger that cannot be read.

  /// Zero for a host without a part.
  HostParts of(const PartOwner& owner) const;
};

/// `ledgers`: the entries below `ledger/`.
AllParts parts_in(const std::vector<etcd::KeyValue>& ledgers);

}  // namespace leasehold::cell
