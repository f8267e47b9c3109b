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
  std::map<PartOwner, HostParts> of;  ///< Also of hosts that are no longer members.
  std::vector<Error> problems;        ///< Of each ledger that cannot be read.
};

/// `ledgers`: the entries below `ledger/`.
AllParts parts_in(const std::vector<etcd::KeyValue>& ledgers);

}  // namespace leasehold::cell
