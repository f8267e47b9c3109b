/// A worker whose engine has its weights, and can restore them.
///
/// Threads: main, which is thread 0 of the backend and later runs the engine; `revocations` as its
/// type says. Lifetime: `attached` outlives it.
#pragma once

#include <memory>
#include <optional>

#include "worker/compute/compute.hpp"
#include "worker/engine/engine.hpp"
#include "worker/lease/weights_source.hpp"
#include "worker/program/revocation_reporter.hpp"
#include "worker/program/stages/attached_worker.hpp"

namespace leasehold {

class LoadedWorker {
 public:
  /// Creates the backend and loads the weights, also those of the draft model. Errors: those of
  /// OpenedModel::check_memory, make_compute, check_lockable, WeightsSource::acquire, ModelDigest
  /// and DraftModel.
  static Result<std::unique_ptr<LoadedWorker>> load(AttachedWorker& attached);

  LoadedWorker(const LoadedWorker&) = delete;
  LoadedWorker& operator=(const LoadedWorker&) = delete;
  ~LoadedWorker() { attached_->opened().stop_io(); }

  AttachedWorker& attached() { return *attached_; }
  Compute& compute() { return *compute_; }
  Engine& engine() { return *engine_; }
  ThreadGate& engine_gate() { return engine_gate_; }
  RevocationReporter& revocations() { return revocations_; }
  /// What the tokens of this worker depend on.
  const TextIdentity& identity() const { return identity_; }

  /// Restores the first revoked part of the weights under a new lease, and logs it. Repeated
  /// failures with the same code are logged once. Call it between steps; it blocks. Errors:
  /// BrokerLost while the broker is disconnected; those of WeightsSource::restore.
  Result<void> restore_weights();

  /// Leaves the memory mapped after a device fault, because a failed GPU may still run queued
  /// launches. The driver unmaps the memory when the process ends. The engine and the backend are
  /// never destroyed then.
  void leave_memory_mapped();

 private:
  LoadedWorker(AttachedWorker& attached, std::shared_ptr<Compute> compute,
               const GateDependencies& gates);
  std::unique_ptr<Engine> make_engine();
  WeightsSource::Dependencies weights_dependencies();
  Result<void> bind_weights();
  Result<void> load_draft();
  Result<void> restore_part();

  AttachedWorker* attached_;
  std::shared_ptr<Compute> compute_;
  RevocationReporter revocations_;
  ThreadGate engine_gate_;
  std::unique_ptr<Engine> engine_;
  WeightsSource weights_source_;
  std::optional<Errc> restore_error_;  // of the last attempt to restore a part
  TextIdentity identity_;              // set by `load`
};

}  // namespace leasehold
