/// What each user of etcd may do in a cell. Pure.
///
/// etcd grants ranges of keys, and a user who may write a key may also delete it. Hosts mail each
/// other and share ledgers, and gateways delete keys of hosts. SECURITY.md says what follows.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/cell/decide/cell_keys.hpp"

namespace leasehold::cell {

struct Grant {
  bool may_write = false;  ///< Otherwise the user only reads.
  etcd::KeyRange range;
};

/// A role of etcd. Its user has the same name.
struct EtcdRole {
  std::string name;
  std::vector<Grant> grants;
};

/// Of the agent of a host.
EtcdRole host_role(const CellName& cell, const HostName& host);
/// Of a gateway: it reads the hosts, and deletes those that are silent.
EtcdRole gateway_role(const CellName& cell);
/// Of a monitor with `--cell`, which only reads.
EtcdRole monitor_role(const CellName& cell);
/// Of `brokerctl cell`.
EtcdRole operator_role(const CellName& cell);

/// Commands of etcdctl that make the roles and their users. The password of each user is read from
/// a file NAME.password, so that it is in no argument list.
std::string etcdctl_script(const std::vector<EtcdRole>& roles);
nlohmann::json json_of(const std::vector<EtcdRole>& roles);

}  // namespace leasehold::cell
