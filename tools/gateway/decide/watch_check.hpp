/// Finds out whether a watch of the hosts of a cell hangs: it lacks a change that a read has found
/// some time before. Pure.
///
/// A watch reports changes in the order of their revisions. A read may overtake it, so a change
/// counts only if the watch still lacks it at the next read.
///
/// Threads: one.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "tools/cell/decide/silent_hosts.hpp"

namespace leasehold::gateway {

/// The keys below `hosts/`, by a linearizable read at a revision.
struct HostKeys {
  std::vector<etcd::KeyValue> entries;  ///< Without values.
  etcd::Revision revision;
};

class WatchCheck {
 public:
  using Hosts = std::map<cell::HostName, cell::SilentHosts::Seen>;

  explicit WatchCheck(cell::CellKeys keys) : keys_(std::move(keys)) {}

  /// `newest` is the newest revision that the watch has reported, and `hosts` are those that it
  /// knows. True if it lacks a change that the read before this one has found.
  bool is_behind(const HostKeys& read, etcd::Revision newest, const Hosts& hosts);
  /// The watch begins again.
  void reset();

 private:
  void note_unreported(const HostKeys& read, etcd::Revision newest, const Hosts& hosts);

  cell::CellKeys keys_;
  // Of the last read, what the watch had not reported then:
  etcd::Revision put_;                                // the newest put
  std::map<cell::HostName, etcd::Revision> deleted_;  // with the revision that the watch knew
};

}  // namespace leasehold::gateway
