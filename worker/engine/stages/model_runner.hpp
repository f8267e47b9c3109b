/// Computes a planned step: forward pass, draws, Commit unit.
///
/// The Commit unit reads the lease words once more, writes the sequence records, and that read
/// decides every token: if a word is stored before the read, the token is discarded; if after,
/// exactly that token is still sent.
///
/// The clock is read once per step, just before the Commit unit. If a lease's or request's deadline
/// has passed by then, the step commits nothing for it, even if the watcher of deadlines was
/// stopped together with the step.
///
/// Invariant: after `scrub`, no intermediate value or logit of an earlier step can be read.
///
/// Threads: one (the engine's).
#pragma once

#include <optional>
#include <span>

#include "ipc/segment/thread_gate.hpp"
#include "worker/engine/leases/lease_checks.hpp"
#include "worker/engine/running_requests.hpp"
#include "worker/engine/step_batch.hpp"
#include "worker/engine/token_drawer.hpp"
#include "worker/kv/sequence_record.hpp"
#include "worker/model/transformer.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

class ModelRunner {
 public:
  /// All of these outlive the object.
  struct Dependencies {
    Backend* backend = nullptr;
    ThreadGate* gate = nullptr;  ///< The engine thread's gate.
    const Clock* clock = nullptr;
    const Scheduler* scheduler = nullptr;
    const LeaseChecks* leases = nullptr;
    RunningRequests* running_requests = nullptr;
  };
  /// What the Commit unit decided.
  struct Decision {
    TimePoint at;           ///< Just before the Commit unit.
    SequenceMask live = 0;  ///< The parts of the plan whose tokens count.
  };

  ModelRunner(const ModelConfig& model, KvType kv_type, const SchedulerLimits& limits,
              const Dependencies& dependencies);
  ModelRunner(const ModelRunner&) = delete;  // its members point to each other
  ModelRunner& operator=(const ModelRunner&) = delete;

  /// The limits that the backend must support.
  static BackendLimits backend_limits(const ModelConfig& model, const SchedulerLimits& limits);
  const KvLayout& kv_layout() const { return transformer_.kv_layout(); }
  const StateLayout& state_layout() const { return transformer_.state_layout(); }

  /// Lets the backend prepare for these weights, and returns the number of step shapes prepared.
  std::size_t prepare_steps(const Weights& weights);

  /// Computes the batch, which holds the parts of the plan in the same order. Errors: the device's
  /// fault; the step's results are then invalid.
  Result<Decision> run(const Weights& weights, const StepPlan& plan, const StepBatch& batch);

  /// What the last `run` drew for part `index` of its plan.
  TokenDrawer::Drawn& drawn(std::uint32_t index) { return drawer_.drawn(index); }
  /// PlannedRows::rows_kept of that part.
  std::uint32_t rows_kept(const PlannedRows& part, std::uint32_t index) const {
    return drawer_.rows_kept(part, index);
  }

  /// Logits of a request in the last step. Empty when the request had none, and after `scrub`.
  std::span<const float> last_logits(const RequestId& engine_request_id) const;
  /// Overwrites all intermediate values.
  void scrub();

 private:
  SequenceMask decide(const StepPlan& plan, const StepBatch& batch);

  Dependencies deps_;
  Transformer transformer_;
  TokenDrawer drawer_;
  RecordPieces record_pieces_;
};

}  // namespace leasehold
