/// Which doors the members of a cell have, from what etcd has below `hosts/`. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/cell/decide/silent_hosts.hpp"
#include "tools/gateway/decide/host_table.hpp"

namespace leasehold::gateway {

struct CellDoors {
  std::vector<CellMember> members;    ///< No address occurs twice.
  std::vector<std::string> problems;  ///< Why a host of the cell has no door here, in sentences.
};

/// A door that two hosts name is that of the host which joined last: it was renamed, and its
/// earlier name has not expired yet.
CellDoors doors_of(const std::map<cell::HostName, cell::SilentHosts::Seen>& hosts);

}  // namespace leasehold::gateway
