/// The gate every unit of work passes: announce, then poll, then run.
///
/// A *unit* is the smallest piece of work that polls: a tile on the CPU, a kernel on CUDA. A poll
/// alone is not enough: a thread could be held up between its poll and its first store while the
/// broker takes the memory back. So each thread first announces, in a line the broker reads, that a
/// unit is about to begin; the broker, after flipping a word, waits until the announcement it saw
/// has changed. Both sides use seq_cst, so either the thread sees the flip or the broker sees the
/// announcement (Dekker's argument; ipc/README.md has it in full).
///
///   worker thread, per unit                           broker, per revoke
///     announce = ++seq<<2 | touches    (seq_cst)        word = Revoked                  (seq_cst)
///     revocations[me] == baseline ?    (seq_cst)        revocations[worker] += 1        (seq_cst)
///     … run …                                           snapshot announce[i]            (seq_cst)
///     announce = seq<<2                (release)        quiet when each has changed     (acquire)
///
/// `GateCore` is that protocol and nothing else, over any atomics, so that a model checker can run
/// the very code. C++20-clean.
#pragma once

#include <atomic>
#include <cstdint>

#include "ipc/launch_site.hpp"

namespace leasehold {

/// The atomics of the real machine.
struct StdMemory {
  template <class T>
  using Atomic = std::atomic<T>;
  static constexpr auto seq_cst = std::memory_order_seq_cst;
  static constexpr auto release = std::memory_order_release;
};

constexpr std::uint64_t announcement(std::uint64_t seq, Touches touches) {
  return seq << 2 | static_cast<std::uint64_t>(touches);
}
constexpr Touches touches_of(std::uint64_t announce) {
  return static_cast<Touches>(announce & 3);
}

/// One thread's half of the protocol.
///
/// Lifetime: the announce line and the counters outlive it. Threads: used by one thread only.
template <class Memory = StdMemory>
class GateCore {
 public:
  using Word = typename Memory::template Atomic<std::uint64_t>;

  GateCore(Word& announce, const Word& revocations, const Word& local_stops)
      : announce_(&announce), revocations_(&revocations), local_stops_(&local_stops) {}

  /// Announces a unit and polls. True when nothing changed since `adopt_baseline`; otherwise the
  /// caller must recheck before it runs anything. Always followed by `end_unit`.
  bool begin_unit(Touches touches) {
    // seq_cst store before seq_cst load: pairs with LeaseTable::take_away, which stores the word
    // and the counter before it reads this line.
    announce_->store(announcement(++seq_, touches), Memory::seq_cst);
    return revocations_->load(Memory::seq_cst) == baseline_ &&
           local_stops_->load(Memory::seq_cst) == local_baseline_;
  }

  /// First half of a recheck: what the counters are *before* the words are compared.
  struct Baseline {
    std::uint64_t revocations;
    std::uint64_t local_stops;
  };
  Baseline read_baseline() const {
    return {revocations_->load(Memory::seq_cst), local_stops_->load(Memory::seq_cst)};
  }

  /// Second half: keep the values read first, so a flip during the comparison is seen next time.
  void adopt_baseline(Baseline baseline) {
    baseline_ = baseline.revocations;
    local_baseline_ = baseline.local_stops;
  }

  /// The unit is over: every store it made is visible to a broker that sees this.
  void end_unit() { announce_->store(announcement(seq_, Touches::Nothing), Memory::release); }

  std::uint64_t units_announced() const { return seq_; }

 private:
  Word* announce_;
  const Word* revocations_;
  const Word* local_stops_;
  std::uint64_t seq_ = 0;
  std::uint64_t baseline_ = 0;  // 0 never equals a live counter: the first unit rechecks
  std::uint64_t local_baseline_ = 0;
};

/// The broker's half: has the thread behind this line got past the unit it was in?
///
/// `seen` was read after the flip. A unit that cannot reach the scope does not matter; any other
/// must have moved on. The value comes from the worker: a lie harms only that worker's tenants.
constexpr bool is_quiet(std::uint64_t seen, std::uint64_t now, Touches scope) {
  return touches_of(seen) < scope || now != seen;
}

}  // namespace leasehold
