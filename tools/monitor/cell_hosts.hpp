/// The hosts of a cell, as an observer of etcd sees them from one read to the next. Pure.
///
/// A beat has no time, because hosts have no time in common. So the age of a host's newest beat is
/// counted from the read that found it first.
///
/// Time is an argument. Threads: one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/messages/common.hpp"
#include "tools/cell/decide/cell_keys.hpp"
#include "tools/cell/decide/host_parts.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::monitor {

/// What a read has found.
struct CellEntries {
  cell::CellConfig config;
  std::vector<etcd::KeyValue> hosts;    ///< All below `hosts/`.
  std::vector<etcd::KeyValue> ledgers;  ///< All below `ledger/`.
};

class CellHosts {
 public:
  /// The metrics name this many hosts, those with the oldest beats.
  static constexpr std::size_t kNamedHosts = 64;

  explicit CellHosts(cell::CellKeys keys) : keys_(std::move(keys)) {}

  void listed(const CellEntries& entries, TimePoint now);

  /// {"items": [{"host", "state", "incarnation", "beat_age_ms", "ttl_ms", "tenants", "requests",
  /// "free_blocks", "models", "doors"} …], "problems": [text …]}, by host. The state is "member",
  /// "draining" or "silent": reads have found no newer beat for so long that gateways expire the
  /// host.
  wire::Json to_json(TimePoint now) const;
  /// In the form of Prometheus.
  std::string metrics(TimePoint now) const;

 private:
  struct Host {
    cell::Incarnation incarnation;
    etcd::Revision beat;
    TimePoint since;  // when this beat was found
    cell::HostRecord record;
    cell::HostParts parts;
  };
  std::string_view state_of(const Host& host) const;

  cell::CellKeys keys_;
  Duration slack_{};
  TimePoint read_at_;
  std::map<cell::HostName, Host> hosts_;
  std::vector<std::string> problems_;
};

}  // namespace leasehold::monitor
