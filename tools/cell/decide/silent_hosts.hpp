/// The hosts of a cell, and which of them have been silent for so long that they have stopped by
/// themselves, as an observer of `hosts/` sees it.
///
/// An observer counts from the moment at which it first sees a beat, which is after the host sent
/// it. It deletes the host only if that beat is still the newest. With clock rates that differ by
/// at most 1 %, the host's ceiling has passed then.
///
/// An outage of etcd silences all hosts. So every count begins again after a time without contact.
/// An observer that receives changes by a watch proves its contact by reads: a watch is silent both
/// when no host beats and when its member of etcd hangs.
///
/// Time is an argument, on the observer's own CLOCK_BOOTTIME. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "ipc/etcd/etcd_types.hpp"
#include "tools/cell/decide/cell_keys.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

/// A host that may be expired.
struct Expiry {
  HostName host;
  etcd::Transaction transaction;  ///< Deletes its key if no newer beat has arrived.
};

/// How long an observer waits for a newer beat until the host has stopped by itself.
Duration longest_silence(const HostRecord& record, Duration slack);

class SilentHosts {
 public:
  /// Without contact for this long, every count begins again.
  static constexpr Duration kContactGap = std::chrono::seconds(3);

  SilentHosts(CellKeys keys, Duration slack) : keys_(std::move(keys)), slack_(slack) {}

  /// All entries of `hosts/`, by a linearizable read whose reply came at `now`.
  void listed(const std::vector<etcd::KeyValue>& entries, TimePoint now);
  /// A change that a watch of `hosts/` reports. True if it is more than another beat: the set of
  /// hosts changes, or what one says of its doors or its drain.
  bool changed(const etcd::WatchEvent& event, TimePoint now);
  /// A linearizable read of anything in the cell was answered at `now`.
  void contacted(TimePoint now);
  /// etcd has a newer beat than the one that an expiry compared: its count begins again.
  void refused(const HostName& host, TimePoint now);
  void set_slack(Duration slack) { slack_ = slack; }

  /// A host, as its newest beat describes it.
  struct Seen {
    Incarnation incarnation;
    etcd::Revision modified;
    TimePoint since;  ///< When this beat was seen first.
    Result<HostRecord> record;
  };
  const std::map<HostName, Seen>& hosts() const { return seen_; }
  /// How long the newest beat of the host has been seen, and how long until the host may be expired
  /// if no other one comes. Nothing for a host that is not listed, is not readable or has no TTL.
  struct Silence {
    Duration since{};
    Duration left{};
  };
  std::optional<Silence> silence_of(const HostName& host, TimePoint now) const;
  /// Hosts to expire now. A host without a TTL never is, and neither is one whose record cannot be
  /// read.
  std::vector<Expiry> expired(TimePoint now) const;
  /// The error of each record that cannot be read.
  std::vector<Error> problems() const;

 private:
  std::optional<Silence> silence_of(const Seen& seen, TimePoint now) const;

  CellKeys keys_;
  Duration slack_;
  std::map<HostName, Seen> seen_;
  std::optional<TimePoint> contact_;
};

}  // namespace leasehold::cell
