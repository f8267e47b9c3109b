/// The ids that the index has not confirmed as removed, and the ids that it was sent, so that an
/// index that lists one of them again is asked again.
///
/// Bounded, and shared by tenant (common/owned_queue.hpp): beyond `max_pending` the oldest pending
/// id of the tenant with the most is dropped and counted; beyond `max_ended` its oldest ended id is
/// forgotten, and a later reconciliation does not remove it.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/ids.hpp"
#include "common/owned_queue.hpp"

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

  /// The tenant's request ended: remove its id from the index.
  void add_ended(const TenantId& tenant, const RequestId& id);
  /// A request with this id runs: the id is not removed, also if it ended before.
  void add_live(const RequestId& id);
  /// Some live ids are unknown, so no id that was confirmed is known to be ended.
  void forget_confirmed() { ended_ = IdQueue(ended_.capacity()); }

  bool has_pending() const { return pending_.size() > 0; }
  std::size_t pending() const { return pending_.size(); }
  /// The ids to send next. They stay pending until they are confirmed.
  std::vector<RequestId> batch() const { return pending_.front(max_batch_); }
  void confirm(std::span<const RequestId> batch);

  /// Makes those ids pending that the index lists, that ended in this worker and that no request
  /// uses again. The index may list an id without its prefix (index_answers.hpp). Returns how many.
  std::size_t reconcile(std::span<const RequestId> listed);

  /// Ids dropped since the last call.
  std::vector<RequestId> take_dropped() { return std::exchange(dropped_, {}); }

 private:
  using IdQueue = OwnedQueue<TenantId, RequestId>;
  bool push_again(const RequestId& id);
  void push_pending(const TenantId& tenant, const RequestId& id);

  std::size_t max_batch_;
  IdQueue pending_;
  IdQueue ended_;
  std::vector<RequestId> dropped_;
};

}  // namespace leasehold
