/// Proposes tokens that may follow the texts of a step. Whatever it proposes, the texts stay the
/// same. A right proposal saves a step; a wrong one costs a row.
///
/// One per engine; it is given all sequences at once. What it keeps of one request never reaches
/// another.
///
/// Threads: the engine's, except `unmap`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ipc/segment/gate_set.hpp"
#include "worker/schedule/scheduler_types.hpp"

namespace leasehold {

class Proposer {
 public:
  using Running = std::span<const std::unique_ptr<Sequence>>;

  virtual ~Proposer() = default;

  /// Forgets the sequences that are not among these. Called before `propose`, and after sequences
  /// were revoked or stopped.
  virtual void retain(Running running) = 0;

  /// Appends at most `most` tokens to the empty `proposals` of each sequence. Only
  /// `PlannedRows::n_proposed` of them are expected to get a row, so a proposer whose tokens take
  /// time makes no more than that. `gates` has the leases below and the sequences of `parts`, in
  /// that order; null without leases.
  virtual void propose(std::span<const PlannedRows> parts, std::uint32_t most,
                       const GateSet* gates) = 0;

  /// The leases that every unit of `propose` depends on. Empty: it runs no unit.
  virtual std::span<const LeaseDependency> leases() const { return {}; }
  /// Clears intermediate values, as Transformer::scrub.
  virtual void scrub() {}
  /// Unmaps all memory under this lease. Precondition: as Engine::unmap_lease. Returns false if
  /// nothing of it is mapped.
  virtual bool unmap(LeaseId) { return false; }
};

}  // namespace leasehold
