/// The changes of ids that wait for the index thread.
///
/// The tenants share each queue: when it is full, the tenant with the most entries loses one.
/// Threads: any; each call takes a short lock.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "common/fair_bounded_queue.hpp"
#include "common/ids.hpp"

namespace leasehold {

class IndexInbox {
 public:
  /// The newest change of each id; the value is true for a live one.
  using Changes = FairBoundedQueue<TenantId, RequestId, bool>;
  using LiveIds = FairBoundedQueue<TenantId, RequestId>;

  explicit IndexInbox(std::size_t max_changes)
      : max_changes_(max_changes), changes_(max_changes), to_keep_(max_changes) {}

  struct Added {
    bool dropped_ended = false;  ///< The inbox was full, and the end of an id was dropped.
    bool must_wake = false;      ///< The caller must make the thread call `take`.
  };
  Added add(Changes::Entry change) {
    const std::scoped_lock lock(mutex_);
    Added added;
    const bool is_live = change.value;
    if (const auto dropped = changes_.push(std::move(change))) {
      lost_live_ = lost_live_ || dropped->value;
      added.dropped_ended = !dropped->value;
    }
    const bool is_half_full = 2 * changes_.size() > max_changes_;
    added.must_wake = (!is_live || is_half_full) && !std::exchange(is_woken_, true);
    return added;
  }

  struct Taken {
    std::vector<Changes::Entry> changes;
    bool lost_live = false;  ///< A live id was dropped.
  };
  Taken take() {
    const std::scoped_lock lock(mutex_);
    is_woken_ = false;
    return {.changes = changes_.take_all(), .lost_live = std::exchange(lost_live_, false)};
  }

  /// Adds a live id for the spool. Returns true if the caller must make the thread call
  /// `take_to_keep`.
  bool keep(const TenantId& tenant, const RequestId& id) {
    const std::scoped_lock lock(mutex_);
    (void)to_keep_.push({.owner = tenant, .key = id});
    return !std::exchange(will_keep_, true);
  }
  std::vector<LiveIds::Entry> take_to_keep() {
    const std::scoped_lock lock(mutex_);
    will_keep_ = false;
    return to_keep_.take_all();
  }

 private:
  std::mutex mutex_;
  std::size_t max_changes_;
  Changes changes_;
  LiveIds to_keep_;
  bool is_woken_ = false;   ///< The thread will call `take`.
  bool will_keep_ = false;  ///< The thread will call `take_to_keep`.
  bool lost_live_ = false;
};

}  // namespace leasehold
