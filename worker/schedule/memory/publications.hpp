/// Fills shared leases with published texts, and lends their blocks to sequences of any tenant.
///
/// A shared lease holds one text, which its only request, the fill, computes. A request whose
/// prompt begins with more blocks of that text than its own lease has cached, and whose adapter has
/// the content of the fill's, reads the shared blocks, and ends when the shared lease ends.
///
/// Invariant: `revision` changes whenever a published text is added or ends, so a match with the
/// present revision is the longest one. A borrowed chain stays referenced until `give_back`.
///
/// Pure bookkeeping. Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "worker/schedule/events.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class Publications {
 public:
  Publications(const SchedulerLimits& limits, Tenancies& tenancies)
      : limits_(limits), tenancies_(tenancies) {}

  // ---- fills

  /// The request that computes the full blocks of `text`. Errors: LeaseFenced (no such shared
  /// lease), BadRequest (no full block, filled already).
  Result<PromptRequest> fill_request(LeaseId lease, std::vector<TokenId> text) const;
  /// Publishes the text of a fill that computed every block, or reports why it ended early.
  /// Precondition: the sequence is a fill, and its blocks are in the index.
  void end_fill(const Sequence& sequence, const Completed& how);
  /// Reports the failure of a waiting fill. Returns false for a request that is not a fill.
  bool fail_fill(const PromptRequest& request, const Completed& how);
  bool fail_fill(const PromptRequest& request, const Error& why);
  /// Reports the failure of a fill that was not queued. The lease may have ended.
  void fail_fill(LeaseId lease, const Error& why) {
    filled_.push_back({.lease = lease, .blocks = std::unexpected(why)});
  }
  std::vector<PrefixFilled> take_filled() { return std::exchange(filled_, {}); }
  /// Called before the lease is removed.
  void lease_ends(const Tenancy& tenancy);

  // ---- readers

  /// The longest published prefix of the sequence's text. The lease's queue head keeps the match.
  const PublishedMatch& match(Tenancy& tenancy, const Sequence& sequence);
  /// Starts the sequence with the matched blocks. Precondition: the lookup in the tenant's own
  /// cache found fewer blocks.
  void lend(Sequence& sequence, Tenancy& tenancy, const PublishedMatch& match);
  /// Releases the blocks that were lent to the sequence, if any.
  void give_back(Sequence& sequence);

 private:
  std::span<const PrefixId> windows_of(std::span<const PrefixId> chain) const;
  bool has_windows(const PublishedMatch& match) const;
  bool report(const PromptRequest& request, Result<std::uint32_t> blocks);

  const SchedulerLimits& limits_;
  Tenancies& tenancies_;
  std::uint64_t revision_ = 1;
  std::vector<PrefixFilled> filled_;  // since the last `take_filled`
};

}  // namespace leasehold
