/// Admits waiting requests, the tenant with the least token counter first.
///
/// Requests under scavenger leases are admitted after all others, and a place of theirs is given to
/// another request that waits for one (Scheduler::admit).
///
/// Order: between tenants by their counter (TokenCounters), to which the work that admitted prompts
/// still need is added. Inside a tenant by priority, then preempted requests first, then by
/// deadline; among equal requests the leases take turns, and inside a lease they are admitted in
/// order of arrival. A request that lacks quota also holds back the requests of its tenant after
/// it; a request whose lease lacks blocks holds back those of its lease.
///
/// Invariant: an admitted sequence has all blocks of its known text and its record, a stop slot of
/// its own, and a number greater than that of every sequence admitted before it.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "worker/schedule/memory/kv_allocator.hpp"
#include "worker/schedule/memory/publications.hpp"
#include "worker/schedule/memory/swap_planner.hpp"
#include "worker/schedule/memory/transfers.hpp"
#include "worker/schedule/pending_events.hpp"
#include "worker/schedule/request_fit.hpp"
#include "worker/schedule/running_sequences.hpp"
#include "worker/schedule/tenants/tenancies.hpp"
#include "worker/schedule/waiting_requests.hpp"

namespace leasehold {

class Admission {
 public:
  struct Dependencies {
    const SchedulerLimits& limits;
    Tenancies& tenancies;
    RunningSequences& running;
    KvAllocator& kv;
    Publications& publications;
    Transfers& transfers;
    SwapPlanner& swap;
    WaitingRequests& waiting;
    PendingEvents& events;
  };
  explicit Admission(const Dependencies& dependencies)
      : deps_(dependencies), fit_(dependencies.limits, dependencies.tenancies) {}

  const RequestFit& fit() const { return fit_; }
  /// Admits the requests that fit. Precondition: no transfer is pending.
  void admit(TimePoint now);
  /// True if a request of another lease than a scavenger's waits for a place only: its tenant is
  /// below its limit of running requests.
  bool lacks_place();

 private:
  struct Turn;
  /// The blocks that a sequence needs for its admission, and those that its lease has for it.
  struct FirstBlocks {
    std::uint32_t needed = 0;
    std::uint32_t available = 0;
  };
  /// What a sequence need not compute.
  struct KnownPrefix {
    std::vector<PrefixId> chain;  ///< Entries of its lease's cache.
    PublishedMatch published;     ///< Instead of the chain; empty: none.
    bool may_take_tail = false;   ///< The chain may be followed by an end of the cache.
    /// The first entry whose blocks of layers with a window the sequence needs.
    std::uint32_t first_window = 0;

    std::size_t blocks() const { return chain.size() + published.chain.size(); }
    std::span<const PrefixId> windows() const { return std::span(chain).subspan(first_window); }
  };
  /// Room for the blocks of a sequence that starts.
  struct StartRoom {
    std::uint32_t needed = 0;  ///< Blocks besides those of the chain.
    std::uint32_t limit = 0;   ///< Of the tenant.
    std::uint32_t spare = 0;   ///< Blocks that could be taken in addition.
  };
  enum class Attempt { Admitted, LacksBlocks, LacksQuota };

  void admit_from_all(bool scavengers, TimePoint now);
  std::vector<Turn> waiting_tenants(bool scavengers);
  bool admit_from(const TenantAccount& tenant, bool scavengers, TimePoint now);
  bool reject_too_large(Tenancy& tenancy);
  Attempt admit_one(Tenancy& tenancy, TimePoint now);
  Sequence& head_of(Tenancy& tenancy) const;
  static std::unique_ptr<Sequence> take_head(Tenancy& tenancy);
  void note_cached(Sequence& sequence);
  void leave_rows_from(std::uint32_t first_row, std::vector<PrefixId>& chain) const;
  KnownPrefix known_prefix(const Sequence& sequence, Tenancy& tenancy);
  void leave_rows_without_state(const Sequence& sequence, const Tenancy& tenancy,
                                KnownPrefix& known) const;
  void leave_rows_without_windows(const Sequence& sequence, const Tenancy& tenancy,
                                  KnownPrefix& known) const;
  std::uint32_t first_blocks_of(const Sequence& sequence, const KnownPrefix& known) const;
  Attempt reserve_first_blocks(Sequence& sequence, Tenancy& tenancy);
  void start(Sequence& sequence, Tenancy& tenancy, KnownPrefix known, const StartRoom& room);
  OwnedText rest_of(const Sequence& sequence, const Tenancy& tenancy,
                    std::span<const PrefixId> chain) const;
  std::optional<PrefixIndex::End> take_tail(const Sequence& sequence, Tenancy& tenancy,
                                            std::span<const PrefixId> chain);
  void wait_for_blocks(Tenancy& tenancy, FirstBlocks blocks);

  Dependencies deps_;
  RequestFit fit_;
  std::uint64_t admissions_ = 0;
};

}  // namespace leasehold
