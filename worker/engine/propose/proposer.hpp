/// Proposes tokens that may follow the texts of a step. Proposals never change a text: a right
/// proposal saves a step, a wrong one costs a row.
///
/// An engine has one proposer, which gets all sequences in one call. State kept for one request
/// must never influence another request.
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

  /// Drops the state of sequences that are not in `running`. Called before `propose`, and after
  /// sequences were revoked or stopped.
  virtual void retain(Running running) = 0;

  /// Appends at most `most` tokens to the empty `proposals` of each sequence. Only
  /// `PlannedRows::n_proposed` of them are expected to get a row, so an expensive proposer makes no
  /// more than that. `gates` holds the leases of `leases()` and the sequences of `parts`, in that
  /// order; it is null when `leases()` is empty.
  virtual void propose(std::span<const PlannedRows> parts, std::uint32_t most,
                       const GateSet* gates) = 0;

  /// The leases that every unit of `propose` depends on. Empty when `propose` runs no unit.
  virtual std::span<const LeaseDependency> leases() const { return {}; }
  /// Clears intermediate values, like Transformer::scrub.
  virtual void scrub() {}
  /// Unmaps all memory under this lease. Precondition: as Engine::unmap_lease. Returns false if the
  /// lease has no memory mapped here.
  virtual bool unmap(LeaseId) { return false; }
};

}  // namespace leasehold
