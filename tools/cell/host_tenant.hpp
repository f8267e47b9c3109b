/// A tenant of the cell on this host, as its agent knows it.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "ipc/control/messages/cell/cell.hpp"
#include "tools/cell/decide/part_schedule.hpp"
#include "tools/cell/decide/records.hpp"
#include "tools/cell/decide/tenant_demand.hpp"
#include "tools/cell/decide/tenant_part.hpp"

namespace leasehold::cell {

/// A worker that waits for a key. `ready` is cancelled when there is a result.
struct AskedKey {
  AskedKey(boost::asio::io_context& io, std::string of) : hash(std::move(of)), ready(io) {}

  std::string hash;
  std::optional<Result<void>> result;
  boost::asio::steady_timer ready;
};

/// A key that the broker may have.
struct HostKey {
  etcd::Revision modified;        ///< Of the record that the broker has; zero: not known.
  std::optional<CellKey> record;  ///< The newest one that was read.
  wire::KeyLimits limits;         ///< Those that the broker has, with `modified`.
};

struct HostTenant {
  HostTenant(boost::asio::io_context& io, const CellKeys& cell, TenantId of)
      : id(std::move(of)), part(cell, id), confirmed(io) {}

  TenantId id;
  TenantPart part;
  TenantDemand demand;
  PartSchedule schedule;
  boost::asio::steady_timer confirmed;  // cancelled when the broker has confirmed a limit
  std::uint64_t sent = 0;               // revision of the limit that the broker has
  std::map<ApiKeyId, HostKey> keys;
  std::vector<std::shared_ptr<AskedKey>> asked;
  std::optional<wire::CellPartChanged> changed;  // the newest one of this connection
  bool is_resumed = false;    // the broker's state is known, for this membership and connection
  bool is_at_broker = false;  // the broker has the tenant
  bool is_busy = false;       // steps of it run
  bool is_due_again = false;  // they run again then
};

}  // namespace leasehold::cell
