/// What the engine brought forth and the sockets have not had yet.
///
/// In order, but for one thing: a completion seen in mid-step overtakes the tokens of everybody
/// else, so that a tenant hears of a revocation however many streams are being written. It never
/// overtakes a token of its own request.
///
/// Threads: any may add; one takes.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "worker/schedule/events.hpp"

namespace leasehold {

class DeliveryQueue {
 public:
  void add(std::vector<SchedulerEvent> events);
  void add_urgent(Completed completed);

  /// What is to be told next; nothing when all was told.
  std::optional<SchedulerEvent> take();

 private:
  using Queue = std::deque<SchedulerEvent>;
  SchedulerEvent take_at(Queue::iterator position);

  std::mutex mutex_;
  Queue queue_;
  std::deque<Completed> urgent_;
};

}  // namespace leasehold
