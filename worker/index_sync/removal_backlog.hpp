/// The ids that the index has not confirmed as removed, and the ids that it was sent, so that an
/// index that lists one of them again is asked again.
///
/// Bounded: beyond `max_pending` the oldest pending id is dropped and counted; beyond `max_ended`
/// the oldest ended id is forgotten, and a later reconciliation does not remove it.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/ids.hpp"

namespace leasehold {

/// A queue that holds each id once.
class IdQueue {
 public:
  IdQueue() = default;
  IdQueue(IdQueue&&) = default;
  IdQueue& operator=(IdQueue&&) = default;

  /// Does nothing for an id that it holds.
  void push(const RequestId& id);
  void erase(const RequestId& id);
  void pop();  ///< Precondition: not empty.
  bool contains(const RequestId& id) const { return places_.contains(id); }
  std::size_t size() const { return order_.size(); }
  std::vector<RequestId> front(std::size_t count) const;

 private:
  std::list<RequestId> order_;
  std::unordered_map<RequestId, std::list<RequestId>::iterator> places_;
};

struct BacklogLimits {
  std::size_t max_pending = 16'384;
  std::size_t max_ended = 65'536;
  std::size_t max_batch = 256;
};

class RemovalBacklog {
 public:
  explicit RemovalBacklog(const BacklogLimits& limits = {}) : limits_(limits) {}

  /// The request ended: remove its id from the index.
  void add_ended(const RequestId& id);
  /// A request with this id runs: the id is not removed, also if it ended before.
  void add_live(const RequestId& id);
  /// Some live ids are unknown, so no id that was confirmed is known to be ended.
  void forget_confirmed() { ended_ = {}; }

  bool has_pending() const { return pending_.size() > 0; }
  std::size_t pending() const { return pending_.size(); }
  /// The ids to send next. They stay pending until they are confirmed.
  std::vector<RequestId> batch() const { return pending_.front(limits_.max_batch); }
  void confirm(std::span<const RequestId> batch);

  /// Makes those ids pending that the index lists, that ended in this worker and that no request
  /// uses again. Returns how many.
  std::size_t reconcile(std::span<const RequestId> listed);

  /// Ids dropped since the last call.
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  void push_pending(const RequestId& id);

  BacklogLimits limits_;
  IdQueue pending_;
  IdQueue ended_;
  std::uint64_t dropped_ = 0;
};

}  // namespace leasehold
