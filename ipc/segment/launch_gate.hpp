/// The gate that every unit of work passes: announce, then poll, then run.
///
/// A *unit* is the smallest piece of work that polls: a tile on the CPU, a kernel on CUDA. A poll
/// alone is not enough: a thread may be delayed between its poll and its first store while the
/// broker reuses the memory. So each thread first announces the unit in a slot that the broker
/// reads. After flipping a word, the broker waits until the announcement it saw has changed. Both
/// sides use seq_cst, so either the thread sees the change or the broker sees the announcement
/// (Dekker's argument; ipc/README.md has it in full).
///
///   worker thread, per unit                           broker, per revoke
///     announce = ++seq<<2 | touches    (seq_cst)        word = Revoked                  (seq_cst)
///     revocations[me] == baseline ?    (seq_cst)        revocations[worker] += 1        (seq_cst)
///     … run …                                           snapshot announce[i]            (seq_cst)
///     announce = seq<<2                (release)        quiet when each has changed     (acquire)
///
/// `GateCore` and `RevokeCore` hold this protocol and nothing else. They are templates over their
/// atomics, so a model checker runs the same code (tests/relacy). C++20-clean.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "ipc/segment/launch_site.hpp"

namespace leasehold {

/// The atomics of the real machine.
struct StdMemory {
  template <class T>
  using Atomic = std::atomic<T>;
  static constexpr auto seq_cst = std::memory_order_seq_cst;
  static constexpr auto acquire = std::memory_order_acquire;
  static constexpr auto release = std::memory_order_release;

  /// The atomic behind a word of shared memory. Other memories may return a proxy instead.
  template <class Shared>
  static Shared* word(Shared* shared) {
    return shared;
  }
};

constexpr std::uint64_t announcement(std::uint64_t seq, Touches touches) {
  return seq << 2 | static_cast<std::uint64_t>(touches);
}
constexpr Touches touches_of(std::uint64_t announce) {
  return static_cast<Touches>(announce & 3);
}

/// One thread's half of the protocol.
///
/// Lifetime: the announce slot and the counters outlive it. Threads: one thread only.
template <class Memory = StdMemory>
class GateCore {
 public:
  using Word = typename Memory::template Atomic<std::uint64_t>;

  GateCore(Word& announce, const Word& revocations, const Word& local_stops)
      : announce_(&announce), revocations_(&revocations), local_stops_(&local_stops) {}

  /// Announces a unit and polls. Returns true when nothing changed since the last `recheck`.
  /// Otherwise the caller ends this unit, rechecks, and begins a new one. Every call must be
  /// followed by `end_unit`.
  bool begin_unit(Touches touches) {
    // seq_cst store before seq_cst load: pairs with RevokeCore, which stores the word and the
    // counter before it reads this slot.
    announce_->store(announcement(++seq_, touches), Memory::seq_cst);
    return revocations_->load(Memory::seq_cst) == baseline_ &&
           local_stops_->load(Memory::seq_cst) == local_baseline_;
  }

  /// Compares the words after a poll that saw a change. The counters are read *before* `compare`
  /// reads the words, and these values become the baseline, so the next poll sees a change that
  /// happens during the comparison.
  template <class Compare>
  auto recheck(Compare&& compare) {
    const std::uint64_t revocations = revocations_->load(Memory::seq_cst);
    const std::uint64_t local_stops = local_stops_->load(Memory::seq_cst);
    const auto remaining = std::forward<Compare>(compare)();
    baseline_ = revocations;
    local_baseline_ = local_stops;
    return remaining;
  }

  /// Ends the unit: a broker that sees this store sees every store of the unit.
  void end_unit() { announce_->store(announcement(seq_, Touches::Nothing), Memory::release); }

 private:
  Word* announce_;
  const Word* revocations_;
  const Word* local_stops_;
  std::uint64_t seq_ = 0;
  std::uint64_t baseline_ = 0;  // a live counter is never 0, so the first unit rechecks
  std::uint64_t local_baseline_ = 0;
};

/// True when the thread has ended the unit it announced in `seen`, or that unit cannot reach
/// `scope`. `seen` was read after the change. Both values come from the worker: a false value harms
/// only that worker's tenants.
constexpr bool is_quiet(std::uint64_t seen, std::uint64_t now, Touches scope) {
  return touches_of(seen) < scope || now != seen;
}

/// The broker's half. Threads: one broker thread, any number of gates.
template <class Memory = StdMemory>
struct RevokeCore {
  using Word = typename Memory::template Atomic<std::uint64_t>;

  /// A word and its new value.
  struct WordStore {
    Word* word;
    std::uint64_t bits;
  };

  /// Stores the word of each change, then increments the worker's counter.
  template <class Changes, class StoreFor>
  static void store_words(const Changes& changes, StoreFor store_for, Word& revocations) {
    for (const auto& change : changes) {
      const WordStore word_store = store_for(change);
      word_store.word->store(word_store.bits, Memory::seq_cst);
    }
    // After the words: a thread that reads the new count finds the new words.
    // Pairs with GateCore::begin_unit and recheck.
    revocations.fetch_add(1, Memory::seq_cst);
  }

  /// Reads what a thread announces, after a change. seq_cst: pairs with GateCore::begin_unit.
  static std::uint64_t snapshot(const Word& announce) { return announce.load(Memory::seq_cst); }

  /// acquire: pairs with GateCore::end_unit, so the unit's stores have happened.
  static bool is_quiet_since(std::uint64_t seen, const Word& announce, Touches scope) {
    return is_quiet(seen, announce.load(Memory::acquire), scope);
  }
};

}  // namespace leasehold
