/// Keeps the pending ids, whose removal the index has not confirmed, and all ended ids, so that a
/// removal can be repeated if the index lists an ended id again.
///
/// Bounded, and shared by tenant (common/fair_bounded_queue.hpp): beyond `max_pending` the oldest
/// pending id of the tenant with the most ids is dropped and counted; beyond `max_ended` the oldest
/// ended id of such a tenant is dropped, and a later reconciliation does not remove it.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/fair_bounded_queue.hpp"
#include "common/ids.hpp"

namespace leasehold {

struct BacklogLimits {
  std::size_t max_pending = 16'384;
  std::size_t max_ended = 65'536;
  std::size_t max_batch = 256;
};

class RemovalBacklog {
 public:
  explicit RemovalBacklog(const BacklogLimits& limits = {})
      : max_batch_(limits.max_batch), pending_(limits.max_pending), ended_(limits.max_ended) {}

  /// Adds the id of an ended request, which is to be removed from the index.
  void add_ended(const TenantId& tenant, const RequestId& id);
  /// Records that a request with this id runs: the id is not removed, even if an earlier request
  /// with it ended.
  void add_live(const RequestId& id);
  /// Called when some live ids were lost: drops all ended ids, because any of them may be in use
  /// again. Pending ids stay.
  void forget_confirmed() { ended_ = IdQueue(ended_.capacity()); }

  bool has_pending() const { return pending_.size() > 0; }
  std::size_t pending() const { return pending_.size(); }
  /// The ids to send next. They stay pending until they are confirmed.
  std::vector<RequestId> batch() const { return pending_.front(max_batch_); }
  void confirm(std::span<const RequestId> batch);

  /// Makes ids pending again that the index lists although they ended in this worker and no request
  /// uses them again. The index may list an id without its prefix (index_answers.hpp). Returns
  /// their number.
  std::size_t reconcile(std::span<const RequestId> listed);

  /// Ids dropped since the last call.
  std::vector<RequestId> take_dropped() { return std::exchange(dropped_, {}); }

 private:
  using IdQueue = FairBoundedQueue<TenantId, RequestId>;
  bool push_again(const RequestId& id);
  void push_pending(const TenantId& tenant, const RequestId& id);

  std::size_t max_batch_;
  IdQueue pending_;
  IdQueue ended_;
  std::vector<RequestId> dropped_;
};

}  // namespace leasehold
