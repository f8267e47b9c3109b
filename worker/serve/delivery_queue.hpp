/// Events of the engine that are not written to a socket yet.
///
/// A queue with one exception: a completion observed within a step overtakes the tokens of other
/// requests, so that many open streams do not delay the notice of a revocation. It never overtakes
/// a token of its own request.
///
/// Threads: any thread may add; one thread takes.
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

  /// Takes the next event; nothing when the queue is empty.
  std::optional<SchedulerEvent> take();

 private:
  using Queue = std::deque<SchedulerEvent>;
  SchedulerEvent take_at(Queue::iterator position);

  std::mutex mutex_;
  Queue queue_;
  std::deque<Completed> urgent_;
};

}  // namespace leasehold
