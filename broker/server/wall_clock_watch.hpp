/// Reports the offset of the machine's clock from boot time: once at the start, and whenever the
/// clock is set. Source: TFD_TIMER_CANCEL_ON_SET in timerfd_create(2).
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>

#include "common/clock.hpp"
#include "common/result.hpp"

namespace leasehold {

/// Threads: the io_context's thread.
class WallClockWatch {
 public:
  using OnSet = std::function<void(Duration offset)>;

  /// Errors: SystemError.
  static Result<std::unique_ptr<WallClockWatch>> create(boost::asio::io_context& io, OnSet on_set);
  /// Reports the offset now, and later ones from the io_context.
  void start();

 private:
  WallClockWatch(boost::asio::posix::stream_descriptor timer, OnSet on_set)
      : timer_(std::move(timer)), on_set_(std::move(on_set)) {}
  void wait();

  boost::asio::posix::stream_descriptor timer_;
  OnSet on_set_;
};

}  // namespace leasehold
