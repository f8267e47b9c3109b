/// Probes that watch every unit of an engine and act after the poll of a unit and before the unit
/// itself.
///
/// Threads: call `start` and the readers while no step runs.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "ipc/segment/thread_gate.hpp"

namespace leasehold::testing {

/// Calls `act(n)` at each unit; n counts from 0 since `start`. Several threads may act at once.
class AtUnits final : public GateProbe {
 public:
  void start(std::function<void(int)> act) {
    act_ = std::move(act);
    count_ = 0;
  }
  void unit_polled(std::uint32_t, LaunchSite, std::uint16_t, SequenceMask) override {
    const int n = count_.fetch_add(1);
    if (act_) act_(n);
  }
  int count() const { return count_.load(); }

 private:
  std::function<void(int)> act_;
  std::atomic<int> count_{0};
};

struct WatchedUnit {
  std::uint32_t thread = 0;
  LaunchSite site = LaunchSite::Commit;
  std::uint16_t layer = 0;
  SequenceMask live = 0;
};

/// Records units and acts at a chosen one, under its lock, so units that are recorded later come
/// after the act. Another thread may have polled for such a unit before the act, but it polls for
/// its next unit after it.
class UnitWatch final : public GateProbe {
 public:
  static constexpr std::size_t kNever = ~std::size_t{0};

  /// Clears the record. `act` runs at unit `at`, counted from 0 from now on.
  void start(std::size_t at = kNever, std::function<void()> act = {}) {
    const std::scoped_lock lock(mutex_);
    units_.clear();
    at_ = at;
    act_ = std::move(act);
    second_at_ = kNever;
    watching_ = true;
  }
  void stop() {
    const std::scoped_lock lock(mutex_);
    watching_ = false;
  }

  void unit_polled(std::uint32_t thread, LaunchSite site, std::uint16_t layer,
                   SequenceMask live) override {
    const std::scoped_lock lock(mutex_);
    if (!watching_) return;
    units_.push_back({thread, site, layer, live});
    if (units_.size() - 1 == at_) act_();
    if (units_.size() - 1 == second_at_) second_act_();
  }
  /// Called from `act`: schedules another act at a later unit.
  void act_again(std::size_t at, std::function<void()> act) {
    second_at_ = at;
    second_act_ = std::move(act);
  }

  const std::vector<WatchedUnit>& units() const { return units_; }
  std::size_t at() const { return at_; }
  bool acted() const { return units_.size() > at_; }

  /// Per thread, the units recorded after the act with a live sequence of `mask`. The unit of the
  /// act itself is not counted.
  std::map<std::uint32_t, int> units_after_act(SequenceMask mask) const {
    std::map<std::uint32_t, int> after;
    for (std::size_t i = at_ + 1; acted() && i < units_.size(); ++i) {
      if ((units_[i].live & mask) != 0) ++after[units_[i].thread];
    }
    return after;
  }

 private:
  std::mutex mutex_;
  bool watching_ = false;
  std::vector<WatchedUnit> units_;
  std::size_t at_ = kNever;
  std::function<void()> act_;
  std::size_t second_at_ = kNever;
  std::function<void()> second_act_;
};

}  // namespace leasehold::testing
