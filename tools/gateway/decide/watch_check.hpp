/// Finds out whether a watch of the hosts of a cell hangs: it lacks a change that a read has found
/// some time before. Pure.
///
/// A watch reports changes in the order of their revisions. A read may overtake it, so a change
/// counts only if the watch still lacks it at the next read. A read says which put is the newest
/// and how many keys there are, so its size does not depend on the number of hosts. A change that
/// the watch lacks is a put, or changes the number of keys.
///
/// Threads: one.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ipc/etcd/etcd_types.hpp"

namespace leasehold::gateway {

/// The keys below `hosts/`, by a linearizable read.
struct HostKeys {
  etcd::Revision newest;  ///< Of the newest put of a key that exists. Zero: there is none.
  std::size_t count = 0;
  etcd::Revision revision;  ///< At which they were read.
};

class WatchCheck {
 public:
  /// What the watch reports: all entries, then changes.
  void listed(const std::vector<etcd::KeyValue>& entries, etcd::Revision revision);
  void reported(const etcd::WatchEvent& event);
  /// True if the watch lacks a change that the read before this one has found. False for a watch
  /// that has not listed the hosts: it may wait for several members of etcd first.
  bool is_behind(const HostKeys& read);
  /// The watch begins again.
  void reset() { *this = {}; }

 private:
  std::set<std::string> keys_;       // that the watch knows
  etcd::Revision newest_;            // change that it has reported; zero: nothing yet
  std::optional<HostKeys> read_;     // the last read, unless the watch was ahead of it
  std::optional<std::size_t> then_;  // keys that the watch knew at that read; nothing: as now
};

}  // namespace leasehold::gateway
