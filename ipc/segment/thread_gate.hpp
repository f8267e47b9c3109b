/// ThreadGate, the gate of one thread: the only way to run a unit and to get a permit. It runs the
/// protocol of launch_gate.hpp, and compares the words of the GateSet in a new step and after the
/// counter has moved.
///
/// C++20-clean.
#pragma once

#include <cstdint>
#include <utility>

#include "ipc/segment/gate_set.hpp"
#include "ipc/segment/launch_gate.hpp"
#include "ipc/segment/leased.hpp"

namespace leasehold {

/// Permission to touch leased memory during one unit. Not copyable. A unit keeps neither the permit
/// nor a pointer that it opened: both are invalid once the unit ends.
class LaunchPermit {
 public:
  LaunchPermit(const LaunchPermit&) = delete;
  LaunchPermit& operator=(const LaunchPermit&) = delete;

  /// The address behind a handle. Precondition: the unit's gate set names the memory's lease.
  template <class T>
  T* open(Leased<T> handle) const {
    return handle.address_;
  }
  bool is_live(std::uint32_t sequence) const { return (live_ >> sequence & 1) != 0; }
  SequenceMask live() const { return live_; }

 private:
  template <class>
  friend class BasicThreadGate;
  explicit LaunchPermit(SequenceMask live) : live_(live) {}

  SequenceMask live_;
};

/// Observes units, for tests and slow motion. Called between poll and run; `live` is the set of
/// live sequences in the permit. Threads: called on any gate thread.
class GateProbe {
 public:
  virtual ~GateProbe() = default;
  virtual void unit_polled(std::uint32_t thread, LaunchSite site, std::uint16_t layer,
                           SequenceMask live) = 0;
};

/// Where a unit is in the model, and what memory it can reach.
struct UnitLabel {
  LaunchSite site;
  std::uint16_t layer;
  Touches touches;
};

/// One thread's gate, over the machine's memory or a simulated one.
///
/// Lifetime: announce slot, table and stop flags outlive it. Threads: one thread only.
template <class Memory = StdMemory>
class BasicThreadGate {
 public:
  struct Dependencies {
    std::uint32_t thread = 0;                        ///< Index of the announce slot.
    std::atomic<std::uint64_t>* announce = nullptr;  ///< The announce slot.
    const std::atomic<std::uint64_t>* revocations = nullptr;
    const StopFlags* stops = nullptr;
    GateProbe* probe = nullptr;  ///< May be null.
  };

  explicit BasicThreadGate(const Dependencies& dependencies)
      : core_(*Memory::word(dependencies.announce), *Memory::word(dependencies.revocations),
              *Memory::word(&dependencies.stops->changes())),
        thread_(dependencies.thread),
        probe_(dependencies.probe) {}

  /// Announces, polls, and calls `unit(const LaunchPermit&)` if any sequence is live.
  /// Returns the live sequences; empty means that the unit did not run.
  template <class Unit>
  SequenceMask run(const GateSet& set, UnitLabel label, Unit&& unit) {
    bool refused = false;
    while (!core_.begin_unit(label.touches) || step_ != set.step()) [[unlikely]] {
      core_.end_unit();  // rechecking takes longer than most units; the broker need not wait for it
      refused |= recheck(set, label);
      if (live_ == 0) break;
    }
    if (live_ != 0) {
      if (probe_ != nullptr) [[unlikely]]
        probe_->unit_polled(thread_, label.site, label.layer, live_);
      ++units_run_;
      std::forward<Unit>(unit)(LaunchPermit(live_));
    }
    core_.end_unit();
    if (refused) [[unlikely]]
      set.listener().refusing_unit_ended();
    return live_;
  }

  /// Polls without announcing a unit, while units run on a device. Returns the sequences that a
  /// unit that began now would find live.
  SequenceMask poll(const GateSet& set, UnitLabel label) {
    const bool changed = !core_.begin_unit(Touches::Nothing) || step_ != set.step();
    core_.end_unit();
    if (changed && recheck(set, label)) set.listener().refusing_unit_ended();
    return live_;
  }

  std::uint64_t units_run() const { return units_run_; }

 private:
  // True when a sequence is no longer live.
  bool recheck(const GateSet& set, UnitLabel label) {
    const SequenceMask from = step_ == set.step() ? live_ : set.all();
    step_ = set.step();
    live_ = core_.recheck([&] { return set.recheck(from, label.site, label.layer); });
    return live_ != from;
  }

  GateCore<Memory> core_;
  std::uint32_t thread_;
  GateProbe* probe_;
  std::uint64_t step_ = 0;  // steps start at 1
  SequenceMask live_ = 0;
  std::uint64_t units_run_ = 0;
};

using ThreadGate = BasicThreadGate<>;

}  // namespace leasehold
