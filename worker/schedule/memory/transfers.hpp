/// The copies of KV blocks that the engine makes before the rows of a step: swap-outs, swap-ins,
/// pieces of spills, and recurrent states to and from the prefix cache.
///
/// Invariant: the transfers are listed in the order in which they must be made, because a later one
/// may write to blocks that an earlier one reads. A transfer stays in the list until it is made or
/// dropped, and no sequence is admitted meanwhile.
///
/// Each sequence of a transfer has a place in the gate set and a stop slot of its own, as a running
/// sequence does.
///
/// Pure. Threads: one (the engine's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "worker/schedule/running_sequences.hpp"
#include "worker/schedule/scheduler_types.hpp"

namespace leasehold {

class Transfers {
 public:
  explicit Transfers(const RunningSequences& running) : running_(running) {}

  void add(SwapTransfer transfer);
  /// Removes the sequence's first transfer, which was made. Precondition: it has one.
  SwapTransfer take(const Sequence& sequence);
  /// Removes the sequence's transfers, so that their copies are not made, and returns them.
  std::vector<SwapTransfer> drop(const Sequence& sequence);

  bool has(const Sequence& sequence) const;
  bool has_of(LeaseId lease) const;
  bool empty() const { return transfers_.empty(); }
  const std::vector<SwapTransfer>& all() const { return transfers_; }

  /// True when the gate set has no place for another sequence.
  bool is_gate_set_full() const;
  /// A stop slot that neither a running sequence nor the sequence of a transfer uses.
  std::uint32_t free_stop_slot() const;

 private:
  const RunningSequences& running_;
  std::vector<SwapTransfer> transfers_;
};

}  // namespace leasehold
