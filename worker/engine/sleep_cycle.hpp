/// Decides when a worker sleeps, which means that it has no weights and restores none, and when it
/// wakes. Pure: time is an argument.
///
///   Awake ─idle for the limit─► asks the broker ─┐
///     ▲   └──────────── worker.asleep ───────────┴─► Asleep ─request─► asks the broker ─┐
///     │                                                │                                │
///     └─── restored ─── Waking ◄──── worker.asleep: false, reply to weights.wake ◄──────┘
///                         └── no room for the weights: asks the broker to sleep again
///
/// The callers pass the broker's orders and replies in the order in which they arrived.
///
/// Threads: one.
#pragma once

#include <optional>

#include "common/clock.hpp"

namespace leasehold {

enum class SleepPhase : std::uint8_t { Awake, Asleep, Waking };

class SleepCycle {
 public:
  /// Zero: the worker never asks to sleep because it is idle.
  explicit SleepCycle(Duration idle_limit) : idle_limit_(idle_limit) {}

  SleepPhase phase() const { return phase_; }
  bool is_asleep() const { return phase_ == SleepPhase::Asleep; }

  /// The broker's order, or the revocation of a part with `worker_asleep`. Requests that arrived
  /// before do not wake the worker, except those since `take_idle`. Returns false if the worker is
  /// asleep already.
  bool fall_asleep();
  /// The broker's order, or its reply to `weights.wake`. Returns false if the worker is not asleep.
  bool begin_waking();
  /// All parts are there. Returns false if the worker was not waking.
  bool end_waking();

  /// A request was submitted, or must end soon because its lease or the worker drains.
  void on_arrival() { wants_to_wake_ |= is_asleep() || asked_to_sleep_; }
  /// True if the caller has to call `weights.wake` now; false until `on_wake_refused`.
  bool take_wake();
  /// `still_wanted`: requests wait, so the caller asks again.
  void on_wake_refused(bool still_wanted);

  /// True if the caller has to call `weights.sleep` now: the worker was idle for the limit. False
  /// until `on_sleep_refused`.
  bool take_idle(bool has_work, TimePoint now);
  /// True if the caller has to call `weights.sleep` because the waking worker has no work left and
  /// cannot restore its weights. False until `on_sleep_refused`.
  bool take_back_to_sleep();
  /// The next idle time begins now.
  void on_sleep_refused(TimePoint now);
  /// When `take_idle` can become true, if no work arrives. Nothing: it does not.
  std::optional<TimePoint> idle_until() const;

 private:
  bool ask_to_sleep();

  Duration idle_limit_;
  SleepPhase phase_ = SleepPhase::Awake;
  std::optional<TimePoint> idle_since_;
  bool asked_to_sleep_ = false;
  bool asked_to_wake_ = false;
  bool wants_to_wake_ = false;
};

}  // namespace leasehold
