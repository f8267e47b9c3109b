#include "worker/engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "worker/engine/propose/ngram_proposer.hpp"
#include "worker/engine/token_rules.hpp"

namespace leasehold {
namespace {

SchedulerLimits with_model_limits(SchedulerLimits limits, const ModelConfig& model,
                                  const KvLayout& kv, std::uint32_t state_blocks) {
  limits.max_context = model.n_context;
  limits.tokens_per_block = KvLayout::kBlockTokens;
  limits.window = kv.window();
  limits.block_size_bytes = kv.block_size_bytes();
  limits.record_blocks =
      record_block_count(limits.record_shape(), limits.block_size_bytes, state_blocks);
  limits.state_blocks = state_blocks;
  return limits;
}

/// Returns null if nothing is proposed.
std::shared_ptr<Proposer> proposer_for(const SchedulerLimits& limits,
                                       const std::shared_ptr<Proposer>& given) {
  if (limits.speculate == 0) return nullptr;
  return given ? given : std::make_shared<NgramProposer>();
}

SequenceGates::Dependencies gates_of(const Engine::Dependencies& dependencies,
                                     SequenceEnder& ender) {
  return {.table = dependencies.table,
          .clock = dependencies.clock,
          .observer = dependencies.observer,
          .stops = &dependencies.running_requests->stops(),
          .ender = &ender};
}

/// Completes the sample of a step, except for its tenants' tokens.
void finish_sample(StepSample& sample, const StepReport& report, const Scheduler& scheduler,
                   Duration duration) {
  sample.step = report.summary.step;
  sample.at = report.decided_at;
  sample.duration = duration;
  sample.n_seqs = report.summary.n_seqs;
  sample.running = scheduler.running().size();
  sample.waiting = scheduler.tenancies().waiting_count();
}

}  // namespace

Engine::Engine(const EngineConfig& config, const Dependencies& dependencies)
    : deps_(dependencies),
      runner_(config.model, config.kv_type, config.limits,
              {.backend = deps_.backend,
               .gate = deps_.engine_gate,
               .clock = deps_.clock,
               .scheduler = &scheduler_,
               .leases = &leases_,
               .running_requests = deps_.running_requests}),
      memory_(runner_.kv_layout().block_size_bytes()),
      scheduler_(with_model_limits(config.limits, config.model, runner_.kv_layout(),
                                   runner_.state_layout().blocks())),
      weights_(config.model.name),
      leases_({.table = deps_.table,
               .clock = deps_.clock,
               .observer = deps_.observer,
               .broker_disconnected = deps_.broker_disconnected}),
      spills_(runner_.kv_layout(), scheduler_),
      ender_({.scheduler = &scheduler_,
              .leases = &leases_,
              .stops = &deps_.running_requests->stops(),
              .runner = &runner_,
              .proposals = &proposals_}),
      proposals_(proposer_for(scheduler_.fit().limits(), deps_.proposer),
                 {.most = scheduler_.fit().limits().speculate, .n_vocab = config.model.n_vocab},
                 {.scheduler = &scheduler_,
                  .running_requests = deps_.running_requests,
                  .clock = deps_.clock,
                  .gates = gates_of(deps_, ender_)}),
      masks_(config.masks, {.scheduler = &scheduler_,
                            .running_requests = deps_.running_requests,
                            .gate = deps_.engine_gate,
                            .tokenizer = deps_.tokenizer,
                            .weights = &weights_,
                            .gates = gates_of(deps_, ender_)}),
      transfers_({.scheduler = &scheduler_,
                  .memory = &memory_,
                  .spills = &spills_,
                  .weights = &weights_,
                  .backend = deps_.backend,
                  .clock = deps_.clock,
                  .gates = gates_of(deps_, ender_)}),
      records_(config.model, {.scheduler = &scheduler_,
                              .memory = &memory_,
                              .backend = deps_.backend,
                              .gate = deps_.engine_gate,
                              .table = deps_.table,
                              .observer = deps_.observer}),
      mover_({.scheduler = &scheduler_,
              .leases = &leases_,
              .memory = &memory_,
              .records = &records_,
              .running_requests = deps_.running_requests,
              .backend = deps_.backend,
              .table = deps_.table,
              .clock = deps_.clock,
              .observer = deps_.observer}),
      submissions_(config.model.n_vocab, {.scheduler = &scheduler_,
                                          .weights = &weights_,
                                          .leases = &leases_,
                                          .clock = deps_.clock}) {}

BackendLimits Engine::backend_limits(const ModelConfig& model, const SchedulerLimits& limits) {
  return ModelRunner::backend_limits(model, limits);
}

std::size_t Engine::prepare_steps() {
  if (!weights_.is_bound() || weights_.first_revoked_part()) return 0;
  return runner_.prepare_steps(weights_.get());
}

// ---------------------------------------------------------------------------------------- leases

void Engine::add_extent(LeaseId lease, ExtentId extent, LeasedMapping mapping,
                        wire::MemoryPool pool) {
  if (memory_.has(lease, extent)) return;
  const auto blocks = static_cast<std::uint32_t>(mapping.size_bytes() / memory_.block_size_bytes());
  memory_.add(lease, extent, std::move(mapping));
  if (pool == wire::MemoryPool::Swap) {
    scheduler_.blocks().add_swap_extent(lease, extent, blocks);
  } else {
    scheduler_.blocks().add_extent(lease, extent, blocks);
  }
}

std::vector<ExtentId> Engine::reclaim_extents(LeaseId lease, std::uint32_t count,
                                              wire::MemoryPool pool) {
  const std::vector<ExtentId> extents = scheduler_.blocks().remove_free_extents(lease, count, pool);
  memory_.remove(lease, extents);
  return extents;
}

void Engine::drop_lease(LeaseId lease) {
  ender_.end_lease(lease, leases_.revocation_of(lease));
  unmap_lease(lease);
  memory_.release_addresses(lease);
}

// --------------------------------------------------------------------------------------- requests

Result<void> Engine::fill(LeaseId lease, std::vector<TokenId> text, RequestAdapter adapter) {
  submissions_.note_arrival();
  TRY(weights_.check());
  if (leases_.completion_for(lease)) {
    return fail(Errc::LeaseRevoked,
                fmt::format("lease {} has ended; publish the text again", to_string(lease)));
  }
  PromptRequest request = TRY(scheduler_.fill_request(lease, std::move(text)));
  request.adapter = std::move(adapter);
  submissions_.submit(std::move(request), [this, lease](const Result<AdapterUse>& queued) {
    if (!queued) scheduler_.publications().fail_fill(lease, queued.error());
  });
  return {};
}

void Engine::report_kv_changes() {
  for (const KvChange& change : scheduler_.take_kv_changes()) {
    if (deps_.eviction_listener == nullptr) continue;
    if (change.is_held) {
      deps_.eviction_listener->kv_held(change.engine_request_id);
    } else {
      deps_.eviction_listener->kv_gone(change.engine_request_id);
    }
  }
}

// --------------------------------------------------------------------------------------- the step

void Engine::end_stopped() {
  ender_.end_revoked_leases(submissions_.adapter_waits().leases());
  ender_.end_stopped();
  submissions_.adapter_waits().refuse_ended();
  scheduler_.waiting().drop_expired(deps_.clock->now());
}

Result<StepReport> Engine::step() {
  spills_.take_answers(*deps_.clock);
  TRY(weights_.check());
  const TimePoint began = deps_.clock->now();
  scheduler_.admit(began);
  report_kv_changes();
  StepReport report;
  const MaskPreparation::Work masks = TRY(masks_.prepare());
  report.awaits_masks = masks.awaits_masks;
  report.mask_units = masks.units;
  proposals_.make();
  StepPlan plan = scheduler_.plan();
  deps_.running_requests->update(stop_slots_of(scheduler_.running().all()));
  records_.clear_released();
  const Result<void> transferred = transfers_.make(plan);
  spills_.post_jobs();
  TRY(transferred);
  report.spills = scheduler_.spill().take_events();
  StepRefusals refusals(plan, *deps_.table, *deps_.clock, *deps_.observer);
  StepBatch batch(++step_, deps_.running_requests->stops(), refusals);
  batch.add_engine_leases(weights_.leases());
  add_parts(plan, batch);
  if (plan.parts.empty()) {
    report.events = scheduler_.take_events();
    return report;
  }

  const TimePoint planned_at = deps_.clock->now();
  const ModelRunner::Decision decision = TRY(runner_.run(weights_.get(), plan, batch));
  if (batch.gates().engine_refused()) {
    ender_.end_refused(plan, refusals);
    return weights_.step_failed(fmt::format("step {} failed and no sequence moved", step_));
  }
  report.ran = true;
  report.decided_at = decision.at;
  report.summary = {.step = step_, .n_seqs = static_cast<std::uint32_t>(plan.parts.size())};
  scheduler_.note_duration(decision.at - planned_at);
  if (deps_.sampler != nullptr && deps_.sampler->is_due(decision.at)) report.sample.emplace();
  commit(plan, decision.live, report);
  ender_.end_refused(plan, refusals);
  report.events = scheduler_.take_events();
  for (const SchedulerEvent& event : report.events) {
    if (std::holds_alternative<Token>(event)) ++report.summary.emitted_tokens;
  }
  if (report.sample) finish_sample(*report.sample, report, scheduler_, deps_.clock->now() - began);
  return report;
}

/// Drops the parts that the batch cannot hold, and ends their sequences.
void Engine::add_parts(StepPlan& plan, StepBatch& batch) {
  std::erase_if(plan.parts, [&](const PlannedRows& part) {
    const Result<void> added = batch.add(part, memory_, *deps_.table);
    if (!added) ender_.end_without_lease(*part.sequence, added.error());
    return !added;
  });
}

// ----------------------------------------------------------------------------------------- commit

/// Commits the live sequences and adds them to the report.
void Engine::commit(const StepPlan& plan, SequenceMask live, StepReport& report) {
  for (std::uint32_t i = 0; i < plan.parts.size(); ++i) {
    if ((live >> i & 1) == 0) continue;
    const Sequence& sequence = *plan.parts[i].sequence;
    const std::uint32_t n_rows = runner_.rows_kept(plan.parts[i], i);
    report.summary.per_seq_kv_positions.push_back(sequence.blocks.committed() + n_rows);
    report.summary.per_seq_leases.push_back(sequence.request.lease);
    if (report.sample) report.sample->add(sequence, n_rows);
    commit_part(plan.parts[i], i);
  }
}

void Engine::commit_part(const PlannedRows& part, std::uint32_t index) {
  auto& [prompt, tokens, error, pooled] = runner_.drawn(index);
  if (error) {
    return scheduler_.end_sequence(*part.sequence,
                                   {.reason = CompletionReason::EngineError, .error = error});
  }
  if (pooled) part.sequence->request.embedding->pooled = *std::move(pooled);
  for (DrawnToken& drawn : tokens) {
    if (!drawn.is_text) continue;
    part.sequence->rules->accept(drawn.sampled.token);
    drawn.ends = part.sequence->rules->over();
  }
  scheduler_.commit(part, std::move(tokens), std::move(prompt));
}

}  // namespace leasehold
