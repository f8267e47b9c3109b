/// The leases that one step depends on, and the listener for refusals.
///
/// Up to 64 sequences share a step. Sequence i is live while three things hold: every word it
/// depends on is exactly the granted word, so is every word the whole step depends on (the
/// engine's weights), and this process has not stopped the sequence. C++20-clean.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ipc/segment/launch_site.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold {

inline constexpr std::uint32_t kMaxStepSequences = 64;
using SequenceMask = std::uint64_t;  ///< Bit i: sequence i of the step.

/// One (slot, granted word) to compare; `word` points into the read-only lease table.
struct LeaseDependency {
  std::uint32_t slot = 0;
  LeaseWord granted;
  const std::atomic<std::uint64_t>* word = nullptr;
};

/// Why this process itself stops a sequence. Gates poll these stops together with the broker's
/// counter.
enum class LocalStop : std::uint8_t {
  None = 0,
  Cancelled,
  DeadlineExceeded,
  LeaseExpired,
  BrokerLost
};

/// Process-local stop flags, one per stop slot. `changes` is incremented after a flag was set;
/// gates poll only `changes`. Threads: any thread may set; gates read.
class StopFlags {
 public:
  /// Stops the sequence at `stop_slot`. The first reason is kept.
  void stop(std::uint32_t stop_slot, LocalStop reason) {
    std::uint8_t none = 0;
    stops_[stop_slot].compare_exchange_strong(none, static_cast<std::uint8_t>(reason));
    changes_.fetch_add(1, std::memory_order_seq_cst);  // pairs with GateCore::begin_unit
  }
  /// Prepares `stop_slot` for another sequence. Engine thread only, between steps.
  void clear(std::uint32_t stop_slot) { stops_[stop_slot].store(0, std::memory_order_seq_cst); }
  LocalStop read(std::uint32_t stop_slot) const {
    return static_cast<LocalStop>(stops_[stop_slot].load(std::memory_order_seq_cst));
  }
  const std::atomic<std::uint64_t>& changes() const { return changes_; }

 private:
  std::atomic<std::uint8_t> stops_[kMaxStepSequences] = {};
  std::atomic<std::uint64_t> changes_{1};
};

/// One refusal, as seen by the thread that found it.
struct GateRefusal {
  static constexpr std::uint32_t kEngine = ~0u;

  std::uint32_t sequence = kEngine;  ///< Index in the step, or kEngine for the whole step.
  std::uint32_t slot = 0;            ///< The slot whose word differs; unset for a local stop.
  LeaseWord granted;                 ///< The word that was granted in that slot.
  LeaseWord seen;                    ///< The word that was read instead.
  LocalStop local = LocalStop::None;
  LaunchSite site = LaunchSite::Commit;
  std::uint16_t layer = 0;
};

/// `refused` is called at most once per sequence and step, and at most once per step for the
/// engine. Threads: called on the gate thread that found the refusal. Must return quickly, must not
/// throw and must not touch leased memory.
class RefusalListener {
 public:
  virtual ~RefusalListener() = default;
  virtual void refused(const GateRefusal& refusal) noexcept = 0;
  /// Called when a unit that found a refusal has ended. Wakes the broker, which waits for that.
  virtual void refusing_unit_ended() noexcept = 0;
};

/// The leases and stop flags that a step depends on. The engine builds the set before the step;
/// afterwards only the record of reported refusals changes.
class GateSet {
 public:
  GateSet(std::uint64_t step, const StopFlags& stops, RefusalListener& listener)
      : step_(step), stops_(&stops), listener_(&listener) {}

  void add_engine_lease(LeaseDependency lease) { engine_.push_back(lease); }
  void add_engine_leases(std::span<const LeaseDependency> leases) {
    engine_.insert(engine_.end(), leases.begin(), leases.end());
  }

  /// Adds one sequence; its index is the number of sequences added before it. A sequence keeps its
  /// stop slot for its whole life, while its index may differ from step to step.
  void add_sequence(std::span<const LeaseDependency> leases, std::uint32_t stop_slot) {
    sequences_.push_back({{leases.begin(), leases.end()}, stop_slot});
  }
  void add_sequence(std::span<const LeaseDependency> leases) {
    add_sequence(leases, sequence_count());
  }

  std::uint64_t step() const { return step_; }
  std::uint32_t sequence_count() const { return static_cast<std::uint32_t>(sequences_.size()); }
  SequenceMask all() const {
    return sequence_count() == kMaxStepSequences ? ~SequenceMask{0}
                                                 : (SequenceMask{1} << sequence_count()) - 1;
  }

  /// The leases that the whole step depends on.
  std::span<const LeaseDependency> engine_leases() const { return engine_; }

  /// Compares the words of all sequences in `live` and returns those still live; none when a lease
  /// of the engine is refused. Reports the first refusal of each to the listener. Called by gates
  /// and by commit.
  SequenceMask recheck(SequenceMask live, LaunchSite site, std::uint16_t layer) const;

  /// True once a thread has found a lease of the engine refused.
  bool engine_refused() const { return engine_reported_.load(std::memory_order_relaxed); }

  RefusalListener& listener() const { return *listener_; }

 private:
  struct Sequence {
    std::vector<LeaseDependency> leases;
    std::uint32_t stop_slot;
  };

  bool first_refusal(const std::vector<LeaseDependency>& leases, GateRefusal& refusal) const;
  bool sequence_refused(std::uint32_t index, GateRefusal& refusal) const;

  std::uint64_t step_;
  const StopFlags* stops_;
  RefusalListener* listener_;
  std::vector<LeaseDependency> engine_;
  std::vector<Sequence> sequences_;
  mutable std::atomic<SequenceMask> reported_{0};
  mutable std::atomic<bool> engine_reported_{false};
};

}  // namespace leasehold
