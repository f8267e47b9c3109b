/// Computes the broker's state after a restart from the journal and from what can be observed.
/// Pure.
///
/// With the lease table kept by a service manager:
///
///   each lease                the later of row and word, by generation and state
///   row newer than its word   the grant never left: Revoked(released), NeverMapped
///   row Fenced                its word becomes Fenced
///   word without a row        the grant was never answered: Fenced(released)
///   worker running            Lost with a reattach grace, during which its leases are unchanged
///   worker untrusted          Lost without a grace; untrusted until it exits
///   worker exited             ProcessExit
///   holder running            may claim its lease; otherwise its exit or the TTL ends it
///   holder exited             Revoked(holder_gone)
///   region not kept           its engine leases are Revoked(worker_gone); its bytes stay counted
///                             until the last of them is closed
///   regions over the capacity kept; no region is added until enough of them are gone
///
/// Without the old table: every lease is Revoked(worker_replaced) in the new one. Its worker cannot
/// see that and runs to the deadlines it knows, so the bytes stay counted until its process exits.
/// The fence timeout starts at the last of those deadlines.
///
/// With another boot id: every lease is Fenced by MachineRestart and all bytes are free.
///
/// Tenants, reserved ids and the answers to acquires always survive.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "broker/books/rows.hpp"
#include "broker/decide/decision.hpp"

namespace leasehold {

/// One slot of a kept table.
struct KeptSlot {
  LeaseWord word;
  TimePoint deadline;
  TimePoint drain_deadline;
  TimePoint word_stored_at;
};

/// Observations at start-up.
struct Facts {
  TimePoint now;
  std::string boot_id;
  /// Slots of the kept table. Empty: a new table is created.
  std::optional<std::vector<KeptSlot>> table;
  std::set<AttachmentId> kept_workers;  ///< Workers whose segment, wakeup_fd and pidfd were kept.
  std::set<RegionId> kept_regions;
  std::vector<ProcessExit> exited_workers;
  std::set<ProcessIdentity> exited_holders;
  Duration reattach_grace{};
};

struct Recovered {
  State state;
  /// Words to store in the table first. Their generations are higher than those in the table.
  using Word = effect::StoreWords::LeaseChange;
  std::vector<Word> words;
  /// Effects to perform once the server is ready, including journal batches.
  std::vector<Effect> effects;
};

/// Errors: BadRequest naming the option, if the capacity of a pool is smaller than the memory that
/// leases still hold.
Result<Recovered> recover(const journal::Image& image, const Facts& facts, BrokerConfig config);

/// The processes to watch: workers, and holders of live leases.
std::vector<std::pair<AttachmentId, ProcessIdentity>> worker_processes(const journal::Image& image);
std::set<ProcessIdentity> holder_processes(const journal::Image& image);

}  // namespace leasehold
