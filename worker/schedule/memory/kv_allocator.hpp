/// Takes KV blocks of the leases for sequences, and evicts cached blocks to make room.
///
/// Cached blocks that no sequence uses count as held by their tenant. They are evicted before the
/// lease asks for growth, before the quota refuses, when an extent is reclaimed, and when the quota
/// is lowered.
///
/// Invariant: no block is taken that would bring the blocks in use by a tenant above the limit of
/// the request. Every request whose text is reported as held is later reported as not held, once.
///
/// Pure bookkeeping. Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "worker/schedule/events.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

/// A running sequence that lacks blocks.
struct Starved {
  Sequence* sequence = nullptr;
  std::uint32_t blocks = 0;  ///< Blocks that the sequence lacks.
  bool over_quota = false;   ///< These blocks would exceed the tenant's quota.
};

class KvAllocator {
 public:
  KvAllocator(const SchedulerLimits& limits, Tenancies& tenancies)
      : limits_(limits), tenancies_(tenancies) {}

  // ---- blocks of running sequences

  /// Reserves the blocks for the next `n_rows` rows. Returns what is missing, and nothing when the
  /// rows have their blocks. Requests growth of the lease one block ahead.
  std::optional<Starved> reserve_rows(Sequence& sequence, std::uint32_t n_rows);
  /// Like `reserve_rows`, for rows of proposals: takes free blocks only, and only if afterwards
  /// each running sequence of the lease could still take its next block of each group, and each
  /// sequence of the tenant could do so within the quota. Returns false otherwise.
  bool reserve_proposed(Sequence& sequence, std::uint32_t n_rows);

  // ---- room

  /// Evicts cached blocks until the lease can take `blocks` within the tenant's limit.
  /// Precondition: evicting every unused one is enough.
  void make_room(Tenancy& tenancy, std::uint32_t blocks, std::uint32_t limit);
  /// Evicts up to `count` cached blocks.
  void evict(Tenancy& tenancy, std::uint32_t count);
  /// Evicts cached blocks while the tenant holds more than `limit`.
  void evict_above(const TenantId& tenant, std::uint32_t limit);
  /// Evicts cached states of more than half of the lease's blocks.
  static void limit_states(Tenancy& tenancy);
  /// Removes up to `count` extents that no sequence uses, those with the fewest cached blocks
  /// first; the cached blocks are evicted.
  std::vector<ExtentId> remove_free_extents(Tenancy& tenancy, std::uint32_t count);

  // ---- reports of held text

  void note_held(const RequestId& id) { changes_.push_back({id, true}); }
  void note_not_held(const RequestId& id) { changes_.push_back({id, false}); }
  /// Reports the requests whose last cached block left the index.
  void note_gone(PrefixIndex& prefixes);
  /// The request ends or waits, and the chain that begins with `cached` may still hold its text.
  void keep_user(PrefixIndex& prefixes, std::span<const PrefixId> cached, const RequestId& id);
  std::vector<KvChange> take_changes() { return std::exchange(changes_, {}); }

 private:
  const SchedulerLimits& limits_;
  Tenancies& tenancies_;
  std::vector<KvChange> changes_;  // since the last `take_changes`
};

}  // namespace leasehold
