#include "worker/program/stages/ready_worker.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "common/machine/cpu_set.hpp"
#include "common/machine/process.hpp"
#include "common/machine/service_manager.hpp"
#include "common/random.hpp"
#include "ipc/control/messages/json_fields.hpp"
#include "worker/lease/descriptor_room.hpp"
#include "worker/serve/stopping.hpp"

namespace leasehold {
namespace {

constexpr auto kIndexStopTimeout = std::chrono::seconds(1);   // when the worker stops
constexpr auto kTracesStopTimeout = std::chrono::seconds(1);  // after the index

/// Logs that the worker is ready, with its limits.
void log_ready(const WorkerOptions& options, const ModelConfig& model,
               std::uint64_t kv_block_size_bytes, std::uint32_t blocks_per_extent) {
  const SchedulerLimits& limits = options.limits;
  spdlog::info(
      "ready name={} address={} block_size_bytes={} blocks_per_extent={} max_batch_size={} "
      "token_budget={} speculate={} max_context={} max_waiting={} max_waiting_per_lease={}",
      options.name, options.listen_path, kv_block_size_bytes, blocks_per_extent,
      limits.max_batch_size, limits.token_budget, limits.speculate, model.n_context,
      limits.max_waiting, limits.max_waiting_per_lease);
}

}  // namespace

Result<std::unique_ptr<ReadyWorker>> ReadyWorker::start(LoadedWorker& loaded,
                                                        ReloadOptions reload) {
  std::unique_ptr<ReadyWorker> worker(new ReadyWorker(loaded, std::move(reload)));
  TRY(worker->open_servers());
  TRY(worker->announce());
  return worker;
}

ReadyWorker::ReadyWorker(LoadedWorker& loaded, ReloadOptions reload)
    : opened_(&loaded.attached().opened()),
      attached_(&loaded.attached()),
      loaded_(&loaded),
      reload_(std::move(reload)),
      service_("STATUS=Serving " + opened_->model.config.name, attached_->broker().link(),
               attached_->events().health()),
      step_reporter_(step_reporter_dependencies()),
      loop_(loaded.engine(), loop_hooks(), EngineLoop::kRestoreInterval,
            opened_->options.idle_sleep_after),
      spill_(SpillService::take(attached_->broker().link(), loaded.engine(),
                                [this] { loop_.post([](Engine&) {}); })),
      serving_(serving_dependencies(), std::move(opened_->listener.acceptor)),
      requests_({.io = &opened_->io.context(),
                 .tenant_io = &opened_->tenant_io.context(),
                 .server = &serving_.server(),
                 .http = &http_,
                 .clock = &opened_->clock}),
      stop_(stop_dependencies()) {
  loaded.revocations().set_server(serving_.server());
  if (serving_.adapters() != nullptr)
    loaded.engine().submissions().adapter_waits().lend(*serving_.adapters());
}

StepReporter::Dependencies ReadyWorker::step_reporter_dependencies() {
  return {.sampler = &attached_->events().step_sampler(),
          .post = [this](auto work) { boost::asio::post(opened_->io.context(), std::move(work)); },
          .send =
              [this](const wire::WorkerStep& step, std::function<void()> on_reply) {
                attached_->broker().link().report_step(step, std::move(on_reply));
              }};
}

EngineLoop::Hooks ReadyWorker::loop_hooks() {
  return {.on_report =
              [this](StepReport report) {
                opened_->step_log.append(report);
                request_log_.log_spills(report.spills);
                if (report.sample) step_reporter_.deliver(*std::move(report.sample));
                serving_.server().deliver(std::move(report.events));
              },
          .on_growth = [this](const auto& requests) { serving_.leases().grow(requests); },
          .on_drained = [this](const auto& leases) { serving_.leases().report_drained(leases); },
          .on_usage = [this](const auto& usage) { serving_.leases().report_usage(usage); },
          .on_served =
              [this](const auto& served) {
                opened_->metrics.engine().add_served(served);
                for (const wire::TenantServed& each : served)
                  attached_->broker().link().report_served(each);
              },
          .on_observed =
              [this](const Engine& e) {
                opened_->metrics.engine().publish(
                    e.scheduler(), DraftModel::is_live(opened_->draft.get()),
                    attached_->events().health().is_asleep(), adapter_counts());
              },
          .on_filled =
              [this](auto filled) { serving_.leases().fills().report_filled(std::move(filled)); },
          .on_weights_lost = [this](Engine&) { return loaded_->restore_weights(); },
          .on_service_changed = [this](const auto& missing) { service_.set(missing); },
          .on_sleep_changed = [this](SleepPhase phase) { service_.set_sleep(phase); },
          .ask_to_sleep = [this](const auto& why) { ask_to_sleep(why); },
          .ask_to_wake = [this] { ask_to_wake(); },
          .between_steps =
              [this](std::optional<Duration> step) {
                AdapterLoader* adapters = serving_.adapters();
                return adapters == nullptr ? EngineLoop::kNever : adapters->work(step);
              }};
}

std::optional<AdapterCounts> ReadyWorker::adapter_counts() {
  AdapterLoader* adapters = serving_.adapters();
  if (adapters == nullptr) return std::nullopt;
  return adapters->counts();
}

/// `worker.asleep` reaches the loop before this reply.
void ReadyWorker::ask_to_sleep(const std::optional<Error>& why) {
  wire::WeightsSleep message{.request_id = {mint_request_id()}};
  if (why) message.why = to_sentence(fmt::format("{}: {}", name(why->code), why->detail));
  attached_->broker().link().call_async(std::string(message.kMethod), {.body = message.to_json()},
                                        [this](const Result<control::Payload>& reply) {
                                          if (!reply) loop_.sleep_refused();
                                        });
}

void ReadyWorker::ask_to_wake() {
  if (attached_->broker().is_disconnected())
    return loop_.wake_refused({Errc::BrokerLost,
                               "the worker is asleep and the broker is disconnected; retry once it "
                               "is back"});
  const wire::WeightsWake message{.request_id = {mint_request_id()}};
  attached_->broker().link().call_async(std::string(message.kMethod), {.body = message.to_json()},
                                        [this](const Result<control::Payload>& reply) {
                                          if (reply) return loop_.set_asleep(false);
                                          loop_.wake_refused(reply.error());
                                        });
}

Serving::Dependencies ReadyWorker::serving_dependencies() {
  return {
      .io = &opened_->io.context(),
      .tenant_io = &opened_->tenant_io.context(),
      .loop = &loop_,
      .engine = &loaded_->engine(),
      .running_requests = &opened_->running_requests,
      .broker = &attached_->broker(),
      .compute = &loaded_->compute(),
      .model = &opened_->model,
      .embeddings = opened_->model.embedding_model(opened_->options),
      .clock = &opened_->clock,
      .eviction_listener = opened_->kv_index.get(),
      .metrics = &opened_->metrics.requests(),
      .tracing = opened_->metrics.traces().tracing(),
      .adapters = {.fd = opened_->adapters.get(), .max_rank = opened_->options.max_adapter_rank},
      .engine_gate = &loaded_->engine_gate(),
      .observer = &loaded_->revocations()};
}

WorkerStop::Dependencies ReadyWorker::stop_dependencies() {
  return {.io = &opened_->io.context(),
          .stop_loop = [this] { loop_.stop(); },
          .refuse_requests =
              [this](std::function<void()> done) {
                loop_.wake_for_requests();
                http_.drain();
                serving_.server().drain(std::move(done));
              },
          .count_requests =
              [this](std::function<void(std::size_t)> done) {
                loop_.post([done = std::move(done)](Engine& engine) {
                  const Scheduler& scheduler = engine.scheduler();
                  done(engine.submissions().adapter_waits().size() + scheduler.running().size() +
                       scheduler.tenancies().waiting_count());
                });
              },
          .is_answering = [this] { return http_.is_answering(); },
          .is_writing = [this] { return http_.is_writing(); },
          .is_broker_disconnected = [this] { return attached_->broker().is_disconnected().load(); },
          .notify_broker =
              [this] {
                const wire::WorkerDraining draining;
                attached_->broker().link().notify(std::string(draining.kMethod),
                                                  {.body = draining.to_json()});
              },
          .when_usage_reported =
              [this](std::function<void()> done) {
                attached_->broker().link().when_usage_reported(std::move(done));
              }};
}

Result<void> ReadyWorker::open_servers() {
  TRY(http_.open(opened_->options, loaded_->identity(),
                 {.model = &opened_->model,
                  .broker = &attached_->broker().link(),
                  .clock = &opened_->clock,
                  .health = &attached_->events().health(),
                  .tracing = opened_->metrics.traces().tracing(),
                  .requests = &requests_,
                  .refused_keys = &opened_->metrics.requests().refused_keys(),
                  .batch_lines = &opened_->metrics.requests().batch_lines(),
                  .load = [&engine = opened_->metrics.engine()] {
                    return http::WorkerLoad{.running = engine.running(),
                                            .waiting = engine.waiting()};
                  }}));
  TRY(opened_->metrics.open(opened_->options, opened_->model));
  watcher_ =
      TRY(DeadlineWatcher::start({.running_requests = &opened_->running_requests,
                                  .table = &attached_->broker().attachment().table,
                                  .clock = &opened_->clock,
                                  .broker_disconnected = &attached_->broker().is_disconnected()}));
  return opened_->io.run([this]() -> Result<void> {
    take_over_broker();
    opened_->signals.on_stop([this](int signal) { stop(signal); });
    return {};
  });
}

void ReadyWorker::take_over_broker() {
  attached_->events().serve(
      {.on_call =
           [this](const std::string& method, control::Payload params, control::Responder respond) {
             if (method == wire::WorkerAsleep::kMethod) return respond(set_asleep(params.body));
             if (method == wire::AdaptersChanged::kMethod) http_.forget_adapters();
             if (RequestDirectory::answers(method))
               return requests_.on_call(method, params.body, std::move(respond));
             if (serving_.adapters() != nullptr && AdapterLoader::answers(method))
               return serving_.adapters()->on_call(method, params.body, std::move(respond));
             serving_.leases().on_call(method, std::move(params), std::move(respond));
           },
       .on_connection_changed = [this](bool disconnected) { connection_changed(disconnected); },
       .on_broker_lost = [this](const Error&) { stop_.stop_when_idle(); }},
      serving_.leases());
}

Result<control::Payload> ReadyWorker::set_asleep(const control::Json& params) {
  loop_.set_asleep(TRY(wire::WorkerAsleep::from_json(params)).asleep);
  return control::Payload{.body = wire::Empty{}.to_json()};
}

void ReadyWorker::connection_changed(bool disconnected) {
  if (!stop_.is_draining())
    notify_service_manager(disconnected ? "STATUS=Waiting for the broker" : service_.serving());
  serving_.server().set_broker_disconnected(disconnected);
  http_.forget_adapters();  // a change may have been missed
  if (disconnected) return;
  if (serving_.adapters() != nullptr) serving_.adapters()->reconnected();
  serving_.leases().repeat_drained();
  service_.repeat();
  stop_.notify_broker();
}

void ReadyWorker::stop(int signal) {
  if (signal == SIGTERM) return stop_.drain(opened_->options.drain_timeout);
  notify_service_manager("STOPPING=1\nSTATUS=Stopping");
  loop_.stop();
}

Result<void> ReadyWorker::announce() {
  const OpenedModel& model = opened_->model;
  const std::uint64_t kv_block_size_bytes = loaded_->engine().kv_block_size_bytes();
  wire::WorkerReady ready =
      model.announcement(opened_->options, loaded_->identity(), attached_->broker().attachment());
  ready.kv_block_size_bytes = kv_block_size_bytes;
  ready.max_extents = extents_for(descriptor_limit());
  const wire::ExtentShape shape = TRY(attached_->broker().announce_ready(ready, serving_.leases()));
  attached_->events().health().set_loading(false);
  if (serving_.adapters() != nullptr)
    serving_.adapters()->set_extent_bytes(shape.extent_size_bytes);
  serving_.leases().set_blocks_per_extent(std::max(1u, shape.blocks_per_extent));
  log_ready(opened_->options, model.config, kv_block_size_bytes, shape.blocks_per_extent);
  return opened_->io.run([this]() -> Result<void> {
    opened_->signals.on_reload([this] { reload_configuration(opened_->options, reload_, loop_); });
    notify_service_manager("READY=1\n" + service_.serving());
    return {};
  });
}

Result<void> ReadyWorker::run() {
  const Result<void> ran = [this] {
    const ScopedCpuAffinity here(loaded_->compute().engine_cpus);
    return loop_.run();
  }();
  watcher_.reset();
  const bool lost = attached_->broker().is_lost();
  http_.close();
  end_requests();
  opened_->stop_io();
  if (opened_->kv_index) opened_->kv_index->stop(kIndexStopTimeout);
  opened_->metrics.traces().stop(kTracesStopTimeout);
  if (!ran) loaded_->leave_memory_mapped();
  if (!ran || !lost) return ran;
  return fail(Errc::BrokerLost,
              "the broker is lost and every lease has run out; start this worker again once a "
              "broker runs");
}

/// Ends every request with a reason, and sends the reasons before the sockets close.
void ReadyWorker::end_requests() {
  loaded_->engine().end_all(worker_stopping());
  serving_.server().deliver(loaded_->engine().take_events());
  serving_.close(opened_->tenant_io);
  // The usage records of the ended requests are already queued in the link.
  (void)attached_->broker().link().await_usage_reports();
}

}  // namespace leasehold
