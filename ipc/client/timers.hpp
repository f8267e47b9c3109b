/// Clock and timers of a session. Tests pass their own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "common/clock.hpp"

namespace leasehold::client {

/// A pending call; destroying it cancels the call. May be destroyed from within the call.
class TimerHandle {
 public:
  virtual ~TimerHandle() = default;
};
using Timer = std::unique_ptr<TimerHandle>;

/// Threads: only the thread that runs the session. Errors: none.
class Timers {
 public:
  virtual ~Timers() = default;
  virtual TimePoint now() const = 0;
  /// Calls `action` once, `delay` from now, unless the returned handle is destroyed first. Never
  /// calls it from within this call.
  virtual Timer after(Duration delay, std::move_only_function<void()> action) = 0;
};

/// Timers on an io_context, with boot time. Lifetime: `io` outlives it and its timers.
class AsioTimers final : public Timers {
 public:
  explicit AsioTimers(boost::asio::io_context& io) : io_(io) {}
  TimePoint now() const override { return clock_.now(); }
  Timer after(Duration delay, std::move_only_function<void()> action) override;

 private:
  boost::asio::io_context& io_;
  SystemClock clock_;
};

}  // namespace leasehold::client
