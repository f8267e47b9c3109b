#include "worker/engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/fault_point.hpp"
#include "worker/engine/gate_numbers.hpp"
#include "worker/engine/lease_time.hpp"
#include "worker/engine/propose/ngram_proposer.hpp"
#include "worker/engine/token_rules.hpp"
#include "worker/engine/worker_gates.hpp"

namespace leasehold {
namespace {

SchedulerLimits with_model_limits(SchedulerLimits limits, const ModelConfig& model,
                                  std::uint64_t block_size_bytes) {
  limits.max_context = model.n_context;
  limits.tokens_per_block = KvLayout::kBlockTokens;
  limits.record_blocks = record_block_count(model.n_context, block_size_bytes);
  limits.block_size_bytes = block_size_bytes;
  return limits;
}

Completed revoked(LeaseId lease, LeaseWord word) {
  return {.reason = CompletionReason::Revoked,
          .revocation = RevocationInfo{.lease = lease, .reason = word.reason()}};
}

Transformer::Limits scratch_limits(const SchedulerLimits& limits) {
  return {.max_rows = limits.token_budget, .max_logit_rows = limits.max_logit_rows()};
}

}  // namespace

Engine::Engine(const EngineConfig& config, const Dependencies& dependencies)
    : config_(config),
      deps_(dependencies),
      transformer_(config.model, config.kv_type, scratch_limits(config.limits),
                   *dependencies.backend),
      memory_(transformer_.kv_layout().block_size_bytes()),
      seals_(seal_layout(transformer_.kv_layout())),
      scheduler_(with_model_limits(config.limits, config.model, memory_.block_size_bytes())),
      drawer_({.transformer = &transformer_, .gate = deps_.engine_gate, .scheduler = &scheduler_}) {
  if (config.limits.speculate == 0) return;
  proposer_ = deps_.proposer ? deps_.proposer : std::make_shared<NgramProposer>();
}

BackendLimits Engine::backend_limits(const ModelConfig& model, const SchedulerLimits& limits) {
  return Transformer::backend_limits(model, scratch_limits(limits));
}

std::size_t Engine::prepare_steps() {
  if (!weights_ || revoked_part()) return 0;
  const StopFlags no_stops;  // no request runs
  NullRefusalListener ignored;
  GateSet gates(next_gate_number(), no_stops, ignored);
  gates.add_engine_leases(weights_->leases());
  gates.add_sequence({});
  return transformer_.prepare_steps(*weights_, gates);
}

// ---------------------------------------------------------------------------------------- leases

void Engine::drop_lease(LeaseId lease) {
  const LeaseWord word = deps_.table->word_of(lease);
  scheduler_.end_lease(lease, revoked(lease, word));
  scrub_scratch();
  unmap_lease(lease);
  memory_.release_addresses(lease);
}

std::optional<Completed> Engine::completion_for(LeaseId lease) const {
  const LeaseWord word = deps_.table->word_of(lease);
  if (word.state() != LeaseState::Live) return revoked(lease, word);
  // A lease ends at its deadline, also while the broker is disconnected.
  const LeaseTime time{.deadline = deps_.table->deadline(lease),
                       .broker_disconnected = *deps_.broker_disconnected};
  const LocalStop stop = lease_stop(time, deps_.clock->now());
  if (stop == LocalStop::None) return std::nullopt;
  return stopped_by(stop, lease);
}

// --------------------------------------------------------------------------------------- requests

Result<void> Engine::submit(PromptRequest request) {
  if (!weights_) return check_weights();
  TRY(check_usable(request.lease));
  const std::uint32_t n_vocab = config_.model.n_vocab;
  TRY(check_token_ids(request.prompt, n_vocab));
  TRY(check_token_ids(request.emitted, n_vocab));
  for (const LogitBias& bias : request.sampling.logit_bias)
    TRY(check_token_ids({&bias.token, 1}, n_vocab));
  return queue(std::move(request));
}

Result<void> Engine::cancel(const RequestId& engine_request_id) {
  const std::uint32_t running = scheduler_.running_count();
  TRY(scheduler_.cancel(engine_request_id));
  if (scheduler_.running_count() < running) scrub_scratch();  // a waiting request has no scratch
  return {};
}

void Engine::end_all(const Error& error) {
  scheduler_.end_all(error);
}

// --------------------------------------------------------------------------------------- the step

void Engine::end_stopped() {
  end_revoked_leases();
  end_stopped_sequences();
  scheduler_.drop_expired(deps_.clock->now());
}

Result<StepReport> Engine::step() {
  take_spill_answers();
  TRY(check_weights());
  const TimePoint began = deps_.clock->now();
  scheduler_.admit(began);
  report_kv_changes();
  StepReport report;
  TRY(prepare_masks(report));
  propose();
  StepPlan plan = scheduler_.plan();
  publish_running_requests();
  clear_released_records();
  const Result<void> transferred = make_transfers(plan);
  post_spill_jobs();
  TRY(transferred);
  report.spills = scheduler_.take_spill_events();
  StepRefusals refusals(plan, *deps_.table, *deps_.clock, *deps_.observer);
  StepBatch batch(++step_, deps_.running_requests->stops(), refusals);
  batch.add_engine_leases(weights_->leases());
  add_parts(plan, batch);
  if (plan.parts.empty()) {
    report.events = scheduler_.take_events();
    return report;
  }

  const TimePoint planned_at = deps_.clock->now();
  const LaunchStatus status = transformer_.forward(*weights_, batch.input());
  TRY(check_device());
  drawer_.draw_all(plan, batch, status.live);
  TRY(check_device());  // sampling may have fetched rows from the device
  const TimePoint decided_at = deps_.clock->now();
  const SequenceMask live = status.live & decide(plan, batch);
  TRY(check_device());
  if (batch.gates().engine_refused()) {
    end_refused(plan, refusals);
    return fail(Errc::EngineDecodeFailed, fmt::format("step {} failed and no sequence moved: {}",
                                                      step_, check_weights().error().detail));
  }
  report.ran = true;
  report.decided_at = decided_at;
  report.summary = {.step = step_, .n_seqs = static_cast<std::uint32_t>(plan.parts.size())};
  scheduler_.note_duration(decided_at - planned_at);
  if (wants_sample(decided_at)) report.sample.emplace();
  commit(plan, refusals, live, report);
  report.events = scheduler_.take_events();
  for (const SchedulerEvent& event : report.events) {
    if (std::holds_alternative<Token>(event)) ++report.summary.emitted_tokens;
  }
  if (report.sample) finish_sample(*report.sample, report, began);
  return report;
}

void Engine::finish_sample(StepSample& sample, const StepReport& report, TimePoint began) const {
  sample.step = report.summary.step;
  sample.at = report.decided_at;
  sample.duration = deps_.clock->now() - began;
  sample.n_seqs = report.summary.n_seqs;
  sample.running = scheduler_.running_count();
  sample.waiting = scheduler_.waiting_count();
}

void Engine::end_revoked_leases() {
  for (const LeaseId lease : scheduler_.leases()) {
    const std::optional<Completed> end = completion_for(lease);
    if (!end) continue;
    // The memory stays mapped until the broker asks to unmap it; nothing touches it until then.
    report_found_revoked(lease);
    scheduler_.end_lease(lease, *end);
    scrub_scratch();
  }
}

void Engine::report_found_revoked(LeaseId lease) {
  const TimePoint now = deps_.clock->now();
  const auto since_flip = deps_.table->since_flip(lease, now);
  if (!since_flip) return;  // expired, not revoked
  deps_.observer->lease_found_revoked(
      {.lease = lease, .kernel_site = LaunchSite::Commit, .since_flip_ns = since_flip->count()},
      now);
}

bool Engine::is_draining(LeaseId lease) const {
  return deps_.table->drain_deadline(lease).boottime_ns != 0;
}

std::vector<LeaseId> Engine::take_drained() {
  std::set<LeaseId> drained;
  for (const auto& [lease, tenancy] : scheduler_.tenancies()) {
    const bool is_idle = tenancy.running == 0 && tenancy.waiting.empty();
    if (is_idle && is_draining(lease)) drained.insert(lease);
  }
  std::vector<LeaseId> fresh;
  std::ranges::set_difference(drained, drained_, std::back_inserter(fresh));
  drained_ = std::move(drained);
  return fresh;
}

void Engine::end_stopped_sequences() {
  std::vector<Sequence*> stopped;
  for (const auto& sequence : scheduler_.running()) {
    const LocalStop stop = deps_.running_requests->stops().read(sequence->stop_slot);
    if (stop != LocalStop::None) stopped.push_back(sequence.get());
  }
  for (Sequence* sequence : stopped) {
    const LocalStop stop = deps_.running_requests->stops().read(sequence->stop_slot);
    scheduler_.end_sequence(*sequence, completion_of(*sequence, {.local = stop}));
  }
  if (!stopped.empty()) scrub_scratch();
}

void Engine::publish_running_requests() {
  RunningRequests::StopSlots stop_slots;
  for (const auto& sequence : scheduler_.running()) {
    const PromptRequest& request = sequence->request;
    stop_slots[sequence->stop_slot] = RunningRequest{request.engine_request_id, request.lease,
                                                     sequence->admission, request.deadline};
  }
  deps_.running_requests->update(stop_slots);
}

void Engine::add_parts(StepPlan& plan, StepBatch& batch) {
  std::erase_if(plan.parts, [&](const PlannedRows& part) {
    const Result<void> added = batch.add(part, memory_, *deps_.table);
    if (!added) end_without_lease(*part.sequence, added.error());
    return !added;
  });
}

/// Ends a sequence whose lease has no memory or no word here. The broker may have revoked, fenced
/// and unmapped the lease since it was last read.
void Engine::end_without_lease(Sequence& sequence, const Error& error) {
  LeaseId lease = sequence.request.lease;
  std::optional<Completed> end = completion_for(lease);
  if (!end && sequence.shared_lease) {
    lease = *sequence.shared_lease;
    end = completion_for(lease);
    if (end && end->revocation) end->revocation->scope = FailureScope::Shared;
  }
  if (end) report_found_revoked(lease);
  scheduler_.end_sequence(
      sequence, end.value_or(Completed{.reason = CompletionReason::EngineError, .error = error}));
  scrub_scratch();
}

// ----------------------------------------------------------------------------------------- commit

/// Stops the step before its commit when the device failed: its results are invalid.
Result<void> Engine::check_device() const {
  if (const auto fault = deps_.backend->fault()) return std::unexpected(*fault);
  return {};
}

SequenceMask Engine::decide(const StepPlan& plan, const StepBatch& batch) {
  fault_point(FaultSite::WorkerCommitBeforeRecord);
  const auto write_records = [&](const LaunchPermit& permit) {
    record_pieces_.clear();
    for (std::uint32_t i = 0; i < plan.parts.size(); ++i) {
      if (!permit.is_live(i)) continue;
      Sequence& sequence = *plan.parts[i].sequence;
      const RecordCommit next =
          sequence.record_commit(drawer_.rows_kept(plan.parts[i], i), drawer_.next_tokens(i));
      commit_record(record_pieces_, batch.record(i), config_.model.n_context, next,
                    sequence.record);
    }
    deps_.backend->write(permit, record_pieces_.pieces());
  };
  const SequenceMask decided = deps_.engine_gate->run(
      batch.gates(), {LaunchSite::Commit, 0, Touches::TenantMemory}, write_records);
  fault_point(FaultSite::WorkerCommitAfterRecord);
  return decided;
}

void Engine::commit(const StepPlan& plan, const StepRefusals& refusals, SequenceMask live,
                    StepReport& report) {
  for (std::uint32_t i = 0; i < plan.parts.size(); ++i) {
    if ((live >> i & 1) == 0) continue;
    const Sequence& sequence = *plan.parts[i].sequence;
    const std::uint32_t n_rows = drawer_.rows_kept(plan.parts[i], i);
    report.summary.per_seq_kv_positions.push_back(sequence.blocks.committed() + n_rows);
    report.summary.per_seq_leases.push_back(sequence.request.lease);
    if (report.sample) report.sample->add(sequence, n_rows);
    commit_part(plan.parts[i], i);
  }
  end_refused(plan, refusals);
}

/// Requests refused individually were already notified, even if the step failed.
void Engine::end_refused(const StepPlan& plan, const StepRefusals& refusals) {
  for (std::uint32_t i = 0; i < plan.parts.size(); ++i) {
    if (!refusals.completion(i)) continue;
    scheduler_.end_sequence(*plan.parts[i].sequence, *refusals.completion(i), true);
    scrub_scratch();
  }
}

void Engine::scrub_scratch() {
  transformer_.scrub();
  if (proposer_) {
    proposer_->scrub();
    proposer_->retain(scheduler_.running());
  }
  drawer_.forget_logits();
}

void Engine::commit_part(const PlannedRows& part, std::uint32_t index) {
  auto& [tokens, error] = drawer_.drawn(index);
  if (error) {
    return scheduler_.end_sequence(*part.sequence,
                                   {.reason = CompletionReason::EngineError, .error = error});
  }
  for (DrawnToken& drawn : tokens) {
    if (!drawn.is_text) continue;
    part.sequence->rules->accept(drawn.sampled.token);
    drawn.ends = part.sequence->rules->over();
  }
  scheduler_.commit(part, std::move(tokens));
}

std::span<const float> Engine::last_logits(const RequestId& engine_request_id) const {
  const std::optional<std::uint32_t> row = drawer_.logit_row(engine_request_id);
  return row ? transformer_.logits(*row) : std::span<const float>{};
}

}  // namespace leasehold
