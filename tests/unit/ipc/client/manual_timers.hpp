/// Timers on a clock that the test advances.
#pragma once

#include <vector>

#include "ipc/client/timers.hpp"

namespace leasehold::client {

class ManualTimers final : public Timers {
 public:
  TimePoint now() const override { return clock_.now(); }
  Timer after(Duration delay, std::move_only_function<void()> action) override;

  /// Advances the clock and makes the calls that are due, in order.
  void advance(Duration by);

  /// Number of pending calls.
  std::size_t pending() const;
  /// Time until the next call.
  Duration next() const;

 private:
  struct Entry {
    TimePoint due;
    std::move_only_function<void()> action;
    std::shared_ptr<bool> wanted;
  };
  /// The earliest entry that is not cancelled, or the end.
  std::vector<Entry>::iterator earliest();

  ManualClock clock_;
  std::vector<Entry> entries_;
};

}  // namespace leasehold::client
