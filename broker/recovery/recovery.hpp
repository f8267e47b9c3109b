/// From what was written down and what can be seen to the state a broker goes on with. Pure.
///
/// With the lease table kept by a service manager:
///
///   each lease                takes what is further, journal or table, by generation and state
///   journaled, word older     the grant never left: Revoked(released), NeverMapped
///   fenced in the journal     its word becomes Fenced
///   word without a journal    nobody heard of that grant: Fenced(released)
///   worker still running      Lost with a grace; its leases stay as they are until that is over
///   worker untrusted          Lost without a grace: it stays untrusted until it has exited
///   worker exited             ProcessExit, as always
///   holder exited             HolderGone; one that runs may claim its lease, or it ends by its
///   exit
///                             or TTL
///   region not kept           its engine leases are Revoked(worker_gone); its bytes stay counted
///                             until the last of them is back
///
/// Without (the table died with the broker): every lease is Revoked(worker_replaced) in the new
/// table. Its worker cannot see that and runs to the deadlines it holds, so the bytes stay counted
/// until its process has exited; the ladder starts at the last of those deadlines.
/// Another boot id: every lease is Fenced by MachineRestart, all bytes are free.
///
/// In every case tenants, reserved numbers and the answers of acquires survive.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "broker/books/rows.hpp"
#include "broker/decide/decision.hpp"

namespace leasehold {

/// What stands in one slot of a kept table.
struct KeptSlot {
  LeaseWord word;
  TimePoint deadline;
  TimePoint drain_deadline;
  TimePoint flipped;
};

/// What can be seen at start.
struct Facts {
  TimePoint now;
  std::string boot_id;
  std::optional<std::vector<KeptSlot>> table;  ///< None: a new table is made.
  std::set<AttachmentId> kept_workers;         ///< Line, wakeup_fd and pidfd of them are here.
  std::set<RegionId> kept_regions;
  std::vector<ProcessExit> exited_workers;
  std::set<ProcessIdentity> exited_holders;
  Duration reattach_grace{};
};

struct Recovered {
  State state;
  /// Words to put into the table before anything else: their generation is above what stands there.
  struct Word {
    LeaseId lease;
    LeaseState state = LeaseState::Revoked;
    RevokeReason reason = RevokeReason::None;
  };
  std::vector<Word> words;
  /// To be performed when everything stands, the journal's among them.
  std::vector<Effect> effects;
};

/// Errors: BadRequest when a capacity is smaller than what is still held: says which option.
Result<Recovered> recover(const journal::Image& image, const Facts& facts, BrokerConfig config);

/// Processes whose end matters: those of workers, and those of holders of leases that are live.
std::vector<std::pair<AttachmentId, ProcessIdentity>> worker_processes(const journal::Image& image);
std::set<ProcessIdentity> holder_processes(const journal::Image& image);

}  // namespace leasehold
