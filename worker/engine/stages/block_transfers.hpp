/// Copies the blocks of sequences that the plan swaps out and in, to and from swap memory and the
/// staging buffers of the spill file. Each piece of a copy is a unit that polls.
///
/// Invariant: copies are made in the order of `Scheduler::transfers`, and a transfer leaves that
/// list only when its copy was made or its sequence ended. The next step repeats a transfer that a
/// revoked part of the weights interrupted.
///
/// Threads: one (the engine's).
#pragma once

#include <map>
#include <vector>

#include "kernels/backend.hpp"
#include "worker/engine/leases/engine_weights.hpp"
#include "worker/engine/leases/spill_channel.hpp"
#include "worker/engine/stages/sequence_gates.hpp"
#include "worker/kv/lease_memory.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

class BlockTransfers {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    Scheduler* scheduler = nullptr;
    const LeaseMemory* memory = nullptr;
    const SpillChannel* spills = nullptr;
    const EngineWeights* weights = nullptr;
    Backend* backend = nullptr;
    const Clock* clock = nullptr;
    SequenceGates::Dependencies gates;
  };
  explicit BlockTransfers(const Dependencies& dependencies) : deps_(dependencies) {}

  /// Makes the pending transfers, and drops from the plan the sequences that ended meanwhile.
  /// Precondition: the weights are bound, and the running requests are published. Errors:
  /// EngineDecodeFailed when a part of the weights was revoked; the device's fault.
  Result<void> make(StepPlan& plan);

 private:
  using PartErrors = std::map<std::uint32_t, Error>;  // by part of the gates' plan

  StepPlan sequences() const;
  PartErrors run(const SequenceGates& sequences);
  Result<std::vector<LeasedCopy>> addresses_of(const SwapTransfer& transfer) const;
  Result<Leased<std::byte>> address_of(LeaseId lease, BlockId block) const;

  Dependencies deps_;
};

}  // namespace leasehold
