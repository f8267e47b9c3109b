/// A lease table and a worker segment inside one process, for tests of code behind gates.
///
/// Slot 0 is the engine's lease; slot 1 + i is sequence i's. `revoke` acts as the broker, in the
/// broker's order: word first, then the counter.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "ipc/segment/gate_set.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "ipc/segment/thread_gate.hpp"

namespace leasehold::testing {

/// Records the refusals it receives.
class RecordingListener final : public RefusalListener {
 public:
  void refused(const GateRefusal& refusal) noexcept override {
    const std::scoped_lock lock(mutex_);
    refusals_.push_back(refusal);
  }
  void refusing_unit_ended() noexcept override { progress_.fetch_add(1); }

  std::vector<GateRefusal> refusals() const {
    const std::scoped_lock lock(mutex_);
    return refusals_;
  }
  int progress() const { return progress_.load(); }

 private:
  mutable std::mutex mutex_;
  std::vector<GateRefusal> refusals_;
  std::atomic<int> progress_{0};
};

class FakeTable {
 public:
  static constexpr std::uint32_t kEngineSlot = 0;
  static constexpr std::uint32_t slot_of(std::uint32_t sequence) { return 1 + sequence; }

  FakeTable() { counter_.revocations.store(1); }

  /// Makes the slot live under a generation and returns the dependency that a worker would hold.
  LeaseDependency grant(std::uint32_t slot, std::uint64_t generation = 1) {
    const LeaseWord word = LeaseWord::make(generation, LeaseState::Live);
    slots_[slot].word.store(word.bits);
    return {.slot = slot, .granted = word, .word = &slots_[slot].word};
  }

  void revoke(std::uint32_t slot, RevokeReason reason = RevokeReason::Operator) {
    const LeaseWord word{slots_[slot].word.load()};
    slots_[slot].word.store(LeaseWord::make(word.generation(), LeaseState::Revoked, reason).bits);
    counter_.revocations.fetch_add(1);
  }

  /// A gate set for the next step: the engine's lease and one new lease for each of `n_sequences`
  /// sequences.
  std::unique_ptr<GateSet> step(std::uint32_t n_sequences, std::uint64_t engine_generation = 1) {
    auto set = std::make_unique<GateSet>(++steps_, stops_, listener_);
    set->add_engine_lease(grant(kEngineSlot, engine_generation));
    for (std::uint32_t i = 0; i < n_sequences; ++i)
      set->add_sequence(std::array{grant(slot_of(i))});
    return set;
  }

  ThreadGate gate(std::uint32_t thread = 0, GateProbe* probe = nullptr) {
    return ThreadGate({.thread = thread,
                       .announce = &announce_slots_[thread].announce,
                       .revocations = &counter_.revocations,
                       .stops = &stops_,
                       .probe = probe});
  }

  std::vector<ThreadGate> gates(std::uint32_t threads, GateProbe* probe = nullptr) {
    std::vector<ThreadGate> all;
    for (std::uint32_t t = 0; t < threads; ++t) all.push_back(gate(t, probe));
    return all;
  }

  std::uint64_t announcement_of(std::uint32_t thread) const {
    return announce_slots_[thread].announce.load();
  }
  StopFlags& stops() { return stops_; }
  RecordingListener& listener() { return listener_; }

 private:
  std::array<LeaseSlot, 1 + kMaxStepSequences> slots_ = {};
  WorkerCounter counter_ = {};
  std::array<AnnounceSlot, kMaxGateThreads> announce_slots_ = {};
  StopFlags stops_;
  RecordingListener listener_;
  std::uint64_t steps_ = 0;
};

}  // namespace leasehold::testing
