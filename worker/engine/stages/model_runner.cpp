#include "worker/engine/stages/model_runner.hpp"

#include "common/fault_point.hpp"
#include "worker/engine/check_device.hpp"
#include "worker/engine/gate_numbers.hpp"
#include "worker/engine/worker_gates.hpp"

namespace leasehold {
namespace {

Transformer::Limits scratch_limits(const SchedulerLimits& limits) {
  return {.max_rows = limits.token_budget,
          .max_logit_rows = limits.max_logit_rows(),
          .max_adapter_rank = limits.max_adapter_rank};
}

}  // namespace

ModelRunner::ModelRunner(const ModelConfig& model, KvType kv_type, const SchedulerLimits& limits,
                         const Dependencies& dependencies)
    : deps_(dependencies),
      transformer_(model, kv_type, scratch_limits(limits), *dependencies.backend),
      drawer_({.transformer = &transformer_,
               .gate = dependencies.gate,
               .scheduler = dependencies.scheduler}) {}

BackendLimits ModelRunner::backend_limits(const ModelConfig& model, const SchedulerLimits& limits) {
  return Transformer::backend_limits(model, scratch_limits(limits));
}

std::size_t ModelRunner::prepare_steps(const Weights& weights) {
  const StopFlags no_stops;  // no request runs
  NullRefusalListener ignored;
  GateSet gates(next_gate_number(), no_stops, ignored);
  gates.add_engine_leases(weights.leases());
  gates.add_sequence({});
  return transformer_.prepare_steps(weights, gates);
}

Result<ModelRunner::Decision> ModelRunner::run(const Weights& weights, const StepPlan& plan,
                                               const StepBatch& batch) {
  const LaunchStatus status = transformer_.forward(weights, batch.input());
  TRY(check_device(*deps_.backend));
  drawer_.draw_all(plan, batch, status.live);
  TRY(check_device(*deps_.backend));  // sampling may have fetched rows from the device
  const TimePoint decided_at = deps_.clock->now();
  deps_.leases->stop_due(*deps_.running_requests, decided_at);
  const SequenceMask live = status.live & decide(plan, batch);
  TRY(check_device(*deps_.backend));
  return Decision{.at = decided_at, .live = live};
}

SequenceMask ModelRunner::decide(const StepPlan& plan, const StepBatch& batch) {
  fault_point(FaultSite::WorkerCommitBeforeRecord);
  const RecordShape shape = deps_.scheduler->fit().limits().record_shape();
  const auto write_records = [&](const LaunchPermit& permit) {
    record_pieces_.clear();
    for (std::uint32_t i = 0; i < plan.parts.size(); ++i) {
      if (!permit.is_live(i)) continue;
      Sequence& sequence = *plan.parts[i].sequence;
      const RecordCommit next =
          sequence.record_commit(drawer_.rows_kept(plan.parts[i], i), drawer_.next_tokens(i));
      commit_record(record_pieces_, batch.record(i), shape, next, sequence.record);
    }
    deps_.backend->write(permit, record_pieces_.pieces());
  };
  const SequenceMask decided =
      deps_.gate->run(batch.gates(), {LaunchSite::Commit, 0, Touches::TenantMemory}, write_records);
  fault_point(FaultSite::WorkerCommitAfterRecord);
  return decided;
}

std::span<const float> ModelRunner::last_logits(const RequestId& engine_request_id) const {
  const std::optional<std::uint32_t> row = drawer_.logit_row(engine_request_id);
  return row ? transformer_.logits(*row) : std::span<const float>{};
}

void ModelRunner::scrub() {
  transformer_.scrub();
  drawer_.forget_logits();
}

}  // namespace leasehold
