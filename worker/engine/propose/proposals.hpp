/// Calls the engine's proposer before a step is planned. Without a proposer nothing is proposed.
///
/// Invariant: after `make`, the proposals of a running sequence are tokens of the vocabulary, made
/// for its text as it is now.
///
/// Threads: one (the engine's), except `unmap`.
#pragma once

#include <memory>

#include "worker/engine/propose/proposer.hpp"
#include "worker/engine/running_requests.hpp"
#include "worker/engine/stages/sequence_gates.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

class Proposals {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    Scheduler* scheduler = nullptr;
    RunningRequests* running_requests = nullptr;
    const Clock* clock = nullptr;
    SequenceGates::Dependencies gates;
  };
  struct Limits {
    std::uint32_t most = 0;  ///< The most proposals for one sequence.
    std::uint32_t n_vocab = 0;
  };

  /// `proposer` may be null.
  Proposals(std::shared_ptr<Proposer> proposer, const Limits& limits,
            const Dependencies& dependencies)
      : proposer_(std::move(proposer)), limits_(limits), deps_(dependencies) {}

  /// Replaces the proposals of all running sequences. When the proposer cannot allocate memory, it
  /// proposes nothing.
  void make();
  /// Clears the proposer's intermediate values, and its state of sequences that ended.
  void scrub();
  /// Calls Proposer::unmap. Threads: as there.
  bool unmap(LeaseId lease) { return proposer_ && proposer_->unmap(lease); }

 private:
  void make_gated(StepPlan plan);
  void make_for(const StepPlan& plan, const GateSet* gates);

  std::shared_ptr<Proposer> proposer_;
  Limits limits_;
  Dependencies deps_;
};

}  // namespace leasehold
