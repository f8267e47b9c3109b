#include "worker/program/stages/loaded_worker.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/log.hpp"
#include "common/machine/service_manager.hpp"

namespace leasehold {
namespace {

constexpr auto kShowAfter = std::chrono::seconds(1);
constexpr std::uint64_t kBarWidth = 40;
constexpr std::uint64_t kNeverDrawn = ~std::uint64_t{0};

void draw(std::uint64_t percent) {
  const std::uint64_t filled = percent * kBarWidth / 100;
  (void)write_beside_log(fmt::format("\rloading weights [{:-<{}}] {:>3} %{}",
                                     std::string(filled, '#'), kBarWidth, percent,
                                     percent == 100 ? "\n" : ""));
}

/// Draws a bar on stderr after one second of loading, if stderr is a terminal.
LoadProgress load_progress_on_terminal() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  const auto start = std::chrono::steady_clock::now();
  return [start, drawn = kNeverDrawn](std::uint64_t done_bytes, std::uint64_t total_bytes) mutable {
    const std::uint64_t percent = done_bytes * 100 / std::max<std::uint64_t>(1, total_bytes);
    const bool is_slow = std::chrono::steady_clock::now() - start > kShowAfter;
    if (is_slow && percent != std::exchange(drawn, percent)) draw(percent);
  };
}

}  // namespace

Result<std::unique_ptr<LoadedWorker>> LoadedWorker::load(AttachedWorker& attached) {
  OpenedWorker& opened = attached.opened();
  const WorkerOptions& options = opened.options;
  const Attachment& attachment = attached.broker().attachment();
  OpenedModel& model = opened.model;
  model.choose_arithmetic(options, attachment);
  TRY(model.check_memory(options, attachment, DraftModel::step_memory_bytes(opened.draft.get())));
  BackendLimits limits = Engine::backend_limits(model.config, options.limits);
  if (opened.draft) limits = TRY(opened.draft->backend_limits(limits, attachment));
  const GateDependencies gates{.worker = attachment.worker,
                               .table = &attachment.table,
                               .segment = &attachment.segment,
                               .stops = &opened.running_requests.stops(),
                               .probe = &opened.probe};
  auto compute = std::make_shared<Compute>(TRY(make_compute(
      options, attachment, {.arithmetic = model.arithmetic, .limits = limits, .gates = gates})));
  opened.io.keep(compute);  // handlers that never ran may hold mappings
  std::unique_ptr<LoadedWorker> worker(new LoadedWorker(attached, std::move(compute), gates));
  TRY(worker->bind_weights());
  TRY(worker->load_draft());
  return worker;
}

LoadedWorker::LoadedWorker(AttachedWorker& attached, std::shared_ptr<Compute> compute,
                           const GateDependencies& gates)
    : attached_(&attached),
      compute_(std::move(compute)),
      revocations_(attached.broker().link(), attached.broker().attachment().wakeup_fd.get(),
                   attached.opened().metrics.requests()),
      engine_gate_(make_gates(gates, attached.opened().options.threads, 1).front()),
      engine_(make_engine()),
      weights_source_(*attached.opened().model.file, attached.opened().model.config,
                      attached.opened().model.plan, weights_dependencies()) {}

std::unique_ptr<Engine> LoadedWorker::make_engine() {
  OpenedWorker& opened = attached_->opened();
  BrokerSession& broker = attached_->broker();
  std::shared_ptr<Proposer> proposer;
  if (opened.draft)
    proposer = opened.draft->make_proposer(*compute_->backend, engine_gate_, revocations_);
  return std::make_unique<Engine>(
      EngineConfig{.model = opened.model.config,
                   .kv_type = opened.options.kv_type,
                   .limits = opened.options.limits},
      Engine::Dependencies{.backend = compute_->backend.get(),
                           .table = &broker.attachment().table,
                           .running_requests = &opened.running_requests,
                           .engine_gate = &engine_gate_,
                           .observer = &revocations_,
                           .clock = &opened.clock,
                           .broker_disconnected = &broker.is_disconnected(),
                           .tokenizer = &opened.model.tokenizer,
                           .sampler = &attached_->events().step_sampler(),
                           .eviction_listener = opened.kv_index.get(),
                           .proposer = std::move(proposer)});
}

WeightsSource::Dependencies LoadedWorker::weights_dependencies() {
  return {.broker = &attached_->broker().link(),
          .table = &attached_->broker().attachment().table,
          .backend = compute_->backend.get(),
          .progress = load_progress_on_terminal(),
          .regions = compute_->weights_mapper.get(),
          .place = compute_->weights_placer,
          .early_calls = &attached_->events().early_calls(),
          .unmap_elsewhere = [this](LeaseId lease) { (void)engine_->unmap_lease(lease); }};
}

Result<void> LoadedWorker::bind_weights() {
  OpenedWorker& opened = attached_->opened();
  const OpenedModel& model = opened.model;
  notify_service_manager("STATUS=Loading " + model.config.name);
  if (opened.options.mlock)
    TRY(check_lockable(model.plan, opened.draft ? &opened.draft->plan() : nullptr));
  engine_->bind_weights(TRY(weights_source_.acquire()));
  const ContentDigest content = TRY(opened.digest->take());
  model.file->release_cache();  // neither the weights nor the digest read it again
  weights_source_.pin_content(content);
  identity_ = model.text_identity(opened.options, content);
  spdlog::info("weights bound model=\"{}\" parts={} size_bytes={} backend={} arithmetic={}",
               model.config.name, model.plan.parts.size(), model.plan.size_bytes(),
               compute_->description, model.announced_arithmetic(opened.options));
  spdlog::info("steps prepared shapes={}", engine_->prepare_steps());
  return {};
}

Result<void> LoadedWorker::load_draft() {
  DraftModel* draft = attached_->opened().draft.get();
  if (draft == nullptr) return {};
  WeightsSource::Dependencies dependencies = weights_dependencies();
  dependencies.poll = [this](const auto& unmap) {
    attached_->events().early_calls().unmap_revoked(*engine_, unmap);
  };
  return draft->load(std::move(dependencies));
}

Result<void> LoadedWorker::restore_weights() {
  const Result<void> restored = restore_part();
  const auto error = restored ? std::nullopt : std::optional(restored.error().code);
  const bool is_new = std::exchange(restore_error_, error) != error;
  if (error && is_new) {
    spdlog::error("weights not restored error={} reason=\"{}\"", name(*error),
                  restored.error().detail);
  }
  return restored;
}

Result<void> LoadedWorker::restore_part() {
  if (attached_->broker().is_disconnected()) {
    return fail(Errc::BrokerLost,
                "the weights were revoked and the broker is disconnected; retry once it is back");
  }
  const auto restored = TRY(weights_source_.restore(engine_->weights().get()));
  if (!restored) return {};
  engine_->prepare_steps();
  spdlog::info("weights restored part={}", restored->part);
  if (!restored->from_copy) return {};
  spdlog::info("the model file was replaced by a copy since this worker started part={}",
               restored->part);
  return {};
}

void LoadedWorker::leave_memory_mapped() {
  (void)engine_.release();
  (void)std::make_unique<std::shared_ptr<Compute>>(compute_).release();
}

}  // namespace leasehold
