/// The gate's protocol under the model checker: the code of ipc/segment/launch_gate.hpp over
/// relacy's atomics, which return every value the C++ memory model allows.
///
/// Roles: one broker revokes a lease, waits for quiet and scrubs; each gate runs units on the
/// lease's memory while the lease is live. Violations: a unit finds the memory scrubbed, or touches
/// it unordered with the scrub (relacy reports the data race).
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "ipc/segment/launch_gate.hpp"
#include "ipc/segment/lease_word.hpp"

// Last: it redefines `new`, `delete` and the memory orders.
#include <relacy/relacy.hpp>

namespace leasehold::kernels_model {

struct RelacyMemory {
  static constexpr auto seq_cst = rl::mo_seq_cst;
  static constexpr auto acquire = rl::mo_acquire;
  static constexpr auto release = rl::mo_release;

  /// `weak` makes seq_cst stores of this word relaxed: a planted bug.
  template <class T>
  class Atomic {
   public:
    T load(rl::memory_order order) const { return value_.load(order, RL_INFO); }
    void store(T next, rl::memory_order order) {
      const bool weaken = weak && order == seq_cst;
      value_.store(next, weaken ? rl::mo_relaxed : order, RL_INFO);
    }
    T fetch_add(T more, rl::memory_order order) { return value_.fetch_add(more, order, RL_INFO); }

    bool weak = false;

   private:
    rl::atomic<T> value_;
  };
};

using Word = RelacyMemory::Atomic<std::uint64_t>;
using Gate = GateCore<RelacyMemory>;
using Revoke = RevokeCore<RelacyMemory>;

/// The protocol as implemented. Variants below replace one part each, and must fail.
struct AsWritten {
  static constexpr bool kSnapshotFirst = false;
  static void prepare(Word&) {}
  template <class Compare>
  static bool recheck(Gate& gate, Compare compare) {
    return gate.recheck(compare);
  }
  static void store_words(Word& word, std::uint64_t bits, Word& revocations) {
    const std::array flips{Revoke::WordStore{&word, bits}};
    Revoke::store_words(flips, [](const Revoke::WordStore& flip) { return flip; }, revocations);
  }
  static std::uint64_t snapshot(const Word& announce) { return Revoke::snapshot(announce); }
};

/// The announcement is stored relaxed: it may become visible after the poll.
struct RelaxedAnnounce : AsWritten {
  static void prepare(Word& announce) { announce.weak = true; }
};

/// The counter moves before the words are stored.
struct CounterBeforeWord : AsWritten {
  static void store_words(Word& word, std::uint64_t bits, Word& revocations) {
    revocations.fetch_add(1, rl::mo_seq_cst);
    word.store(bits, rl::mo_seq_cst);
  }
};

/// A flip between the comparison and the reading of the counter counts as seen.
struct BaselineAfterCompare : AsWritten {
  template <class Compare>
  static bool recheck(Gate& gate, Compare compare) {
    const bool live = compare();
    gate.recheck([] { return true; });
    return live;
  }
};

/// The broker reads the announcement before it stores the word.
struct SnapshotBeforeFlip : AsWritten {
  static constexpr bool kSnapshotFirst = true;
};

/// Thread 0 is the broker; the others are gates of one worker, each with its own announcement and
/// its own part of the memory.
template <class Variant, int gates, int units>
class ProtocolSuite : public rl::test_suite<ProtocolSuite<Variant, gates, units>, 1 + gates> {
 public:
  void before() {
    word_.store(kLive, rl::mo_seq_cst);
    revocations_.store(1, rl::mo_seq_cst);
    local_stops_.store(1, rl::mo_seq_cst);
    for (GateState& gate_state : gate_states_) {
      gate_state.announce.store(0, rl::mo_seq_cst);
      gate_state.memory(RL_INFO) = 0;
      Variant::prepare(gate_state.announce);
    }
  }

  void thread(unsigned index) { index == 0 ? revoke() : work(gate_states_[index - 1]); }

 private:
  static constexpr std::uint64_t kLive = LeaseWord::make(1, LeaseState::Live).bits;
  static constexpr std::uint64_t kRevoked =
      LeaseWord::make(1, LeaseState::Revoked, RevokeReason::Operator).bits;
  static constexpr int kScrubbed = -1;

  struct GateState {
    Word announce;
    rl::var<int> memory;
  };
  using Snapshot = std::array<std::uint64_t, gates>;

  Snapshot snapshot() const {
    Snapshot seen{};
    for (int i = 0; i < gates; ++i) seen[i] = Variant::snapshot(gate_states_[i].announce);
    return seen;
  }

  void revoke() {
    Snapshot seen{};
    if constexpr (Variant::kSnapshotFirst) seen = snapshot();
    Variant::store_words(word_, kRevoked, revocations_);
    if constexpr (!Variant::kSnapshotFirst) seen = snapshot();
    for (int i = 0; i < gates; ++i) {
      rl::backoff backoff;
      while (!Revoke::is_quiet_since(seen[i], gate_states_[i].announce, Touches::TenantMemory)) {
        backoff.yield(RL_INFO);
      }
    }
    for (GateState& gate_state : gate_states_) gate_state.memory(RL_INFO) = kScrubbed;
  }

  void work(GateState& gate_state) {
    Gate gate(gate_state.announce, revocations_, local_stops_);
    bool live = true;
    for (int unit = 1; unit <= units; ++unit) {
      while (!gate.begin_unit(Touches::TenantMemory)) {
        gate.end_unit();
        live = Variant::recheck(gate, [&] { return word_.load(rl::mo_seq_cst) == kLive; });
      }
      if (live) touch(gate_state, unit);
      gate.end_unit();
    }
  }

  static void touch(GateState& gate_state, int unit) {
    RL_ASSERT(gate_state.memory(RL_INFO) != kScrubbed);
    gate_state.memory(RL_INFO) = unit;
  }

  Word word_;
  Word revocations_;
  Word local_stops_;
  std::array<GateState, gates> gate_states_;
};

}  // namespace leasehold::kernels_model
