/// A timer on CLOCK_BOOTTIME, which also counts while the machine is suspended.
/// Source: timerfd_create(2).
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "common/clock.hpp"
#include "common/result.hpp"

namespace leasehold {

/// Threads: the io_context's thread.
class AsyncBoottimeTimer {
 public:
  /// Errors: SystemError.
  static Result<std::unique_ptr<AsyncBoottimeTimer>> create(boost::asio::io_context& io,
                                                            std::function<void()> on_due);

  /// Fires once at the deadline, immediately if it has passed. `nullopt` disarms the timer.
  void arm(std::optional<TimePoint> deadline);

 private:
  AsyncBoottimeTimer(boost::asio::posix::stream_descriptor timer, std::function<void()> on_due)
      : timer_(std::move(timer)), on_due_(std::move(on_due)) {}
  void wait();

  boost::asio::posix::stream_descriptor timer_;
  std::function<void()> on_due_;
  std::optional<TimePoint> armed_;
};

}  // namespace leasehold
