/// Computes the masks of sequences with a grammar, before the step is planned.
///
/// The work is done in slices. Each slice is a unit that polls, and MaskSchedule decides whose
/// slice is next. A sequence whose mask is not ready when the step's budget is used up keeps
/// `awaits_mask`, and the next step continues the mask.
///
/// Invariant: after `prepare` has succeeded, `awaits_mask` is false exactly for the running
/// sequences that can draw their next token.
///
/// Threads: one (the engine's).
#pragma once

#include <map>
#include <optional>

#include "ipc/segment/thread_gate.hpp"
#include "worker/engine/leases/engine_weights.hpp"
#include "worker/engine/mask_schedule.hpp"
#include "worker/engine/running_requests.hpp"
#include "worker/engine/stages/sequence_gates.hpp"
#include "worker/engine/token_rules.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

class MaskPreparation {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    Scheduler* scheduler = nullptr;
    RunningRequests* running_requests = nullptr;
    ThreadGate* gate = nullptr;  ///< The engine thread's gate.
    const Tokenizer* tokenizer = nullptr;
    const EngineWeights* weights = nullptr;
    SequenceGates::Dependencies gates;
  };
  struct Work {
    std::size_t units = 0;      ///< Counted work on grammars.
    bool awaits_masks = false;  ///< A sequence still waits for its mask.
  };

  MaskPreparation(const MaskLimits& limits, const Dependencies& dependencies)
      : limits_(limits), deps_(dependencies), drawable_(drawable_tokens(*dependencies.tokenizer)) {}

  /// Precondition: the weights are bound. Errors: EngineDecodeFailed when a part of the weights was
  /// revoked. An error of one mask ends only its sequence.
  Result<Work> prepare();

 private:
  using PartErrors = std::map<std::uint32_t, Error>;  // by part of the plan

  bool mark_awaiting();
  bool can_draw(const Sequence& sequence) const;
  MaskSchedule turns_for(const StepPlan& plan) const;
  PartErrors run_turns(const SequenceGates& sequences, MaskSchedule& turns);

  MaskLimits limits_;
  Dependencies deps_;
  std::optional<TokenMask> drawable_;  // of the model, for all sequences
  TenantId last_tenant_;  // the tenant of the last slice, in this step or an earlier one
};

}  // namespace leasehold
