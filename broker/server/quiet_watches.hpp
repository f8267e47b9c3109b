/// Polls the worker segments of revoked leases and posts the proofs that they are quiet.
///
/// Threads: the io_context's thread. Lifetime: the clock outlives this object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>

#include "broker/decide/event.hpp"
#include "broker/supervise/quiet_observer.hpp"

namespace leasehold {

class QuietWatches {
 public:
  QuietWatches(boost::asio::io_context& io, const Clock& clock, std::function<void(Event)> post)
      : clock_(clock), post_(std::move(post)), timer_(io) {}

  /// Starts a watch as QuietObserver::watch does, and polls it briefly.
  void watch(const WorkerSegmentReader& segment, QuietObserver::Request request);

  /// Continues the watches. Call it after every event and when a worker signals its wakeup_fd; as
  /// long as a watch waits, this object also calls it at short intervals.
  void observe();

  void forget(AttachmentId worker) { observer_.forget(worker); }

 private:
  void observe_soon();
  void post(std::vector<LaunchQuiet> proofs);

  const Clock& clock_;
  std::function<void(Event)> post_;
  QuietObserver observer_;
  boost::asio::steady_timer timer_;
  bool is_armed_ = false;
};

}  // namespace leasehold
