/// Time that moves when a test says so.
#pragma once

#include <vector>

#include "tools/client/timers.hpp"

namespace leasehold::tenant {

class ManualTimers final : public Timers {
 public:
  TimePoint now() const override { return clock_.now(); }
  Timer after(Duration delay, std::move_only_function<void()> action) override;

  /// Calls what is due within `by`, in order of time.
  void advance(Duration by);

  /// How many calls are pending.
  std::size_t pending() const;
  /// When the next one is due, from now.
  Duration next() const;

 private:
  struct Entry {
    TimePoint due;
    std::move_only_function<void()> action;
    std::shared_ptr<bool> wanted;
  };
  /// The earliest wanted entry, or the end.
  std::vector<Entry>::iterator earliest();

  ManualClock clock_;
  std::vector<Entry> entries_;
};

}  // namespace leasehold::tenant
