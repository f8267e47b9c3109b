#include "worker/program/worker_program.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include "common/log.hpp"
#include "common/machine/process.hpp"
#include "common/machine/service_manager.hpp"
#include "ipc/control/transport/socket_file.hpp"
#include "worker/compute/compute.hpp"
#include "worker/index_sync/kv_index_sync.hpp"
#include "worker/lease/deadline_watcher.hpp"
#include "worker/lease/descriptor_room.hpp"
#include "worker/lease/early_calls.hpp"
#include "worker/lease/step_reporter.hpp"
#include "worker/lease/weights_source.hpp"
#include "worker/program/draft_model.hpp"
#include "worker/program/http_part.hpp"
#include "worker/program/io_thread.hpp"
#include "worker/program/lent_spill.hpp"
#include "worker/program/load_progress.hpp"
#include "worker/program/metrics_part.hpp"
#include "worker/program/model_digest.hpp"
#include "worker/program/opened_model.hpp"
#include "worker/program/request_log.hpp"
#include "worker/program/restore_weights.hpp"
#include "worker/program/revocation_reporter.hpp"
#include "worker/program/service_state.hpp"
#include "worker/program/serving.hpp"
#include "worker/program/step_log.hpp"
#include "worker/program/stop_dependencies.hpp"
#include "worker/serve/stopping.hpp"

namespace leasehold {
namespace {

constexpr auto kIndexStopTimeout = std::chrono::seconds(1);  // when the worker stops

class WorkerProgram {
 public:
  WorkerProgram(const WorkerOptions& options, ReloadOptions reload, OpenedModel model)
      : options_(options), reload_(std::move(reload)), model_(std::move(model)) {}
  ~WorkerProgram();

  Result<void> start();
  Result<void> run();

 private:
  Result<void> open_session();
  void on_broker_call(const std::string& method, control::Payload params,
                      control::Responder respond);
  Result<control::Payload> set_sampling(const control::Json& params);
  StepReporter::Dependencies step_reporter_dependencies();
  Result<void> build_engine();
  WeightsSource::Dependencies weights_dependencies();
  EngineLoop::Hooks loop_hooks();
  std::string serving_status() const { return "STATUS=Serving " + model_.config.name; }
  Result<void> bind_weights();
  Result<void> start_serving();
  Result<void> announce_ready();
  void shut_down_server();
  void leave_memory_mapped();
  void watch_signals();
  void on_signal(int number);

  WorkerOptions options_;
  ReloadOptions reload_;
  OpenedModel model_;
  std::unique_ptr<ModelDigest> digest_;   // null once the weights are bound
  std::optional<TextIdentity> identity_;  // set once the weights are bound
  SystemClock clock_;
  MetricsPart metrics_{clock_};
  UnitProbe probe_{options_.slow_motion};
  RunningRequests running_requests_;
  // Outlives everything that may hold a mapping, including handlers that never ran.
  std::unique_ptr<Compute> compute_;
  std::unique_ptr<DraftModel> draft_;      // null without --draft-model
  std::unique_ptr<KvIndexSync> kv_index_;  // null without --kv-index-url
  IoThread io_;
  IoThread tenant_io_;
  boost::asio::signal_set signals_{io_.context(), SIGTERM, SIGINT, SIGHUP};
  std::optional<TenantServer::Acceptor> acceptor_;  // empty once the server has it
  std::optional<control::SocketFile> socket_file_;
  StepLog step_log_;
  RestoreLog restore_log_;
  RequestLog request_log_;
  StepSampler step_sampler_;
  StepReporter step_reporter_{step_reporter_dependencies()};
  std::unique_ptr<BrokerSession> broker_;
  ServiceState service_{serving_status(), broker_};
  std::optional<RevocationReporter> revocation_reporter_;
  std::optional<ThreadGate> engine_gate_;
  std::unique_ptr<WeightsSource> weights_source_;
  EarlyCalls early_calls_{io_.context()};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EngineLoop> loop_;
  std::unique_ptr<LentSpill> spill_;  // null: nothing is spilled
  std::unique_ptr<Serving> serving_;  // set on the I/O thread
  std::unique_ptr<DeadlineWatcher> watcher_;
  std::unique_ptr<HttpPart> http_;    // null without --http
  std::unique_ptr<WorkerStop> stop_;  // set on the I/O thread once everything serves
  bool reload_waits_ = false;         // SIGHUP arrived before `stop_` was set
};

WorkerProgram::~WorkerProgram() {
  tenant_io_.stop();
  io_.stop();
  if (socket_file_) socket_file_->remove();
}

Result<void> WorkerProgram::start() {
  // Cheap steps come first, so that an invalid path fails before the weights are loaded.
  draft_ = TRY(DraftModel::open(options_, model_));
  digest_ = TRY(ModelDigest::start(model_.file, options_.cache_dir));
  acceptor_.emplace(TRY(TenantServer::listen(tenant_io_.context(), options_.listen_path)));
  socket_file_.emplace(options_.listen_path);
  watch_signals();
  TRY(io_.start("io"));
  TRY(tenant_io_.start("tenants"));
  TRY(step_log_.open(options_.event_log, options_.event_log_bytes));
  if (options_.kv_index)
    kv_index_ = KvIndexSync::start({.url = *options_.kv_index}, options_.listen_path + ".index");
  TRY(open_session());
  TRY(build_engine());
  spill_ = LentSpill::take(broker_->link(), *engine_, [this] { loop_->post([](Engine&) {}); });
  TRY(bind_weights());
  return announce_ready();
}

Result<void> WorkerProgram::open_session() {
  BrokerSession::Handlers handlers{
      .on_call =
          [this](const std::string& method, control::Payload params, control::Responder respond) {
            on_broker_call(method, std::move(params), std::move(respond));
          },
      .on_connection_changed =
          [this](bool disconnected) {
            service_.health().set_broker_disconnected(disconnected);
            if (disconnected) step_reporter_.connection_lost();
            if (!serving_) return;
            if (!stop_ || !stop_->is_draining()) {
              notify_service_manager(disconnected ? "STATUS=Waiting for the broker"
                                                  : serving_status());
            }
            serving_->server().set_broker_disconnected(disconnected);
            if (disconnected) return;
            serving_->leases().repeat_drained();
            service_.repeat();
            if (stop_) stop_->notify_broker();
          },
      .on_broker_lost =
          [this](const Error& why) {
            spdlog::error("broker lost reason=\"{}\"", why.detail);
            if (stop_) stop_->stop_when_idle();
          }};
  broker_ = TRY(BrokerSession::open(io_.context(), clock_,
                                    {.broker_socket = options_.broker_socket,
                                     .worker_name = options_.name,
                                     .timeout = options_.broker_timeout},
                                    std::move(handlers)));
  const Attachment& attachment = broker_->attachment();
  revocation_reporter_.emplace(broker_->link(), attachment.wakeup_fd.get());
  spdlog::info("attached to the broker worker={} slots={}", attachment.worker.value,
               attachment.table.slot_count());
  return {};
}

void WorkerProgram::on_broker_call(const std::string& method, control::Payload params,
                                   control::Responder respond) {
  if (method == wire::StepSampling::kMethod) return respond(set_sampling(params.body));
  if (method == wire::WorkerAdmission::kMethod) return respond(service_.set_admission(params.body));
  if (serving_) return serving_->leases().on_call(method, std::move(params), std::move(respond));
  early_calls_.on_call(method, std::move(params), std::move(respond));
}

Result<control::Payload> WorkerProgram::set_sampling(const control::Json& params) {
  step_reporter_.set_sampling(TRY(wire::StepSampling::from_json(params)));
  return control::Payload{.body = wire::Empty{}.to_json()};
}

StepReporter::Dependencies WorkerProgram::step_reporter_dependencies() {
  return {.sampler = &step_sampler_,
          .post = [this](auto work) { boost::asio::post(io_.context(), std::move(work)); },
          .send =
              [this](const wire::WorkerStep& step, std::function<void()> on_reply) {
                broker_->link().report_step(step, std::move(on_reply));
              }};
}

Result<void> WorkerProgram::build_engine() {
  const Attachment& attachment = broker_->attachment();
  model_.choose_arithmetic(options_, attachment);
  const GateDependencies dependencies{.worker = attachment.worker,
                                      .table = &attachment.table,
                                      .segment = &attachment.segment,
                                      .stops = &running_requests_.stops(),
                                      .probe = &probe_};
  TRY(model_.check_memory(options_, attachment, DraftModel::step_memory_bytes(draft_.get())));
  BackendLimits limits = Engine::backend_limits(model_.config, options_.limits);
  if (draft_) limits = TRY(draft_->backend_limits(limits, attachment));
  compute_ = std::make_unique<Compute>(TRY(
      make_compute(options_, attachment,
                   {.arithmetic = model_.arithmetic, .limits = limits, .gates = dependencies})));
  engine_gate_.emplace(make_gates(dependencies, options_.threads, 1).front());
  std::shared_ptr<Proposer> proposer;
  if (draft_)
    proposer = draft_->make_proposer(*compute_->backend, *engine_gate_, *revocation_reporter_);
  engine_ = std::make_unique<Engine>(
      EngineConfig{.model = model_.config, .kv_type = options_.kv_type, .limits = options_.limits},
      Engine::Dependencies{.backend = compute_->backend.get(),
                           .table = &attachment.table,
                           .running_requests = &running_requests_,
                           .engine_gate = &*engine_gate_,
                           .observer = &*revocation_reporter_,
                           .clock = &clock_,
                           .broker_disconnected = &broker_->is_disconnected(),
                           .tokenizer = &model_.tokenizer,
                           .sampler = &step_sampler_,
                           .eviction_listener = kv_index_.get(),
                           .proposer = std::move(proposer)});
  weights_source_ = std::make_unique<WeightsSource>(model_.file, model_.config, model_.plan,
                                                    weights_dependencies());
  loop_ = std::make_unique<EngineLoop>(*engine_, loop_hooks());
  return {};
}

WeightsSource::Dependencies WorkerProgram::weights_dependencies() {
  return {.broker = &broker_->link(),
          .table = &broker_->attachment().table,
          .backend = compute_->backend.get(),
          .progress = load_progress_on_terminal(),
          .regions = compute_->weights_mapper.get(),
          .place = compute_->weights_placer,
          .early_calls = &early_calls_,
          .unmap_elsewhere = [this](LeaseId lease) { (void)engine_->unmap_lease(lease); }};
}

EngineLoop::Hooks WorkerProgram::loop_hooks() {
  return {.on_report =
              [this](StepReport report) {
                step_log_.append(report);
                RequestLog::log_events(report.events);
                request_log_.log_spills(report.spills);
                if (report.sample) step_reporter_.deliver(*std::move(report.sample));
                serving_->server().deliver(std::move(report.events));
              },
          .on_growth = [this](const auto& requests) { serving_->leases().grow(requests); },
          .on_drained = [this](const auto& leases) { serving_->leases().report_drained(leases); },
          .on_usage = [this](const auto& usage) { serving_->leases().report_usage(usage); },
          .on_served =
              [this](const auto& served) {
                metrics_.engine().add_served(served);
                for (const wire::TenantServed& each : served) broker_->link().report_served(each);
              },
          .on_observed =
              [this](const Engine& e) {
                metrics_.engine().publish(e.scheduler(), DraftModel::is_live(draft_.get()));
              },
          .on_filled = [this](auto filled) { serving_->leases().report_filled(std::move(filled)); },
          .on_weights_lost =
              [this](Engine& engine) {
                return restore_weights(engine, *weights_source_, *broker_, restore_log_);
              },
          .on_service_changed = [this](const auto& missing) { service_.set(missing); }};
}

Result<void> WorkerProgram::bind_weights() {
  notify_service_manager("STATUS=Loading " + model_.config.name);
  if (options_.mlock) TRY(check_lockable(model_.plan, draft_ ? &draft_->plan() : nullptr));
  engine_->bind_weights(TRY(weights_source_->acquire()));
  const ContentDigest content = TRY(digest_->take());
  digest_.reset();
  weights_source_->pin_content(content);
  identity_ = model_.text_identity(options_, content);
  spdlog::info("weights bound model=\"{}\" parts={} size_bytes={} backend={} arithmetic={}",
               model_.config.name, model_.plan.parts.size(), model_.plan.size_bytes(),
               compute_->description, model_.announced_arithmetic(options_));
  spdlog::info("steps prepared shapes={}", engine_->prepare_steps());
  if (!draft_) return {};
  WeightsSource::Dependencies loading = weights_dependencies();
  loading.poll = [this](const auto& unmap) { early_calls_.unmap_revoked(*engine_, unmap); };
  return draft_->load(std::move(loading));
}

/// Runs on the I/O thread, so that the broker's calls, which run there too, find `serving_` either
/// complete or null.
Result<void> WorkerProgram::start_serving() {
  serving_ = std::make_unique<Serving>(Serving::Dependencies{.io = &io_.context(),
                                                             .tenant_io = &tenant_io_.context(),
                                                             .loop = loop_.get(),
                                                             .engine = engine_.get(),
                                                             .running_requests = &running_requests_,
                                                             .broker = broker_.get(),
                                                             .compute = compute_.get(),
                                                             .model = &model_,
                                                             .clock = &clock_,
                                                             .eviction_listener = kv_index_.get(),
                                                             .metrics = &metrics_.requests()},
                                       std::move(*acceptor_));
  acceptor_.reset();
  early_calls_.pass_on(serving_->leases());
  revocation_reporter_->set_server(serving_->server(), metrics_.requests());
  return {};
}

Result<void> WorkerProgram::announce_ready() {
  TRY(io_.run([this] { return start_serving(); }));
  watcher_ = TRY(DeadlineWatcher::start({.running_requests = &running_requests_,
                                         .table = &broker_->attachment().table,
                                         .clock = &clock_,
                                         .broker_disconnected = &broker_->is_disconnected()}));
  wire::WorkerReady ready = model_.announcement(options_, *identity_, broker_->attachment());
  ready.kv_block_size_bytes = engine_->kv_block_size_bytes();
  ready.max_extents = extents_for(descriptor_limit());
  http_ = TRY(HttpPart::open(options_, model_, *identity_, *broker_, clock_, service_.health()));
  TRY(metrics_.open(options_, model_));
  const wire::ExtentShape shape = TRY(broker_->announce_ready(ready, serving_->leases()));
  service_.health().set_loading(false);
  serving_->leases().set_blocks_per_extent(std::max(1u, shape.blocks_per_extent));
  log_ready(options_, model_.config, engine_->kv_block_size_bytes(), shape.blocks_per_extent);
  return io_.run([this]() -> Result<void> {
    stop_ = std::make_unique<WorkerStop>(
        stop_dependencies(io_.context(), *loop_, *serving_, *broker_, http_.get()));
    if (broker_->is_lost()) stop_->stop_when_idle();
    if (reload_waits_) reload_configuration(options_, reload_, *loop_);
    notify_service_manager("READY=1\n" + serving_status());
    return {};
  });
}

Result<void> WorkerProgram::run() {
  const Result<void> ran = [this] {
    const ScopedCpuAffinity here(compute_->engine_cpus);
    return loop_->run();
  }();
  watcher_.reset();
  const bool lost = broker_->is_lost();
  if (http_) http_->close();
  shut_down_server();
  tenant_io_.stop();
  io_.stop();
  if (kv_index_) kv_index_->stop(kIndexStopTimeout);
  if (!ran) leave_memory_mapped();
  if (!ran || !lost) return ran;
  return fail(Errc::BrokerLost,
              "the broker is lost and every lease has run out; start this worker again once a "
              "broker runs");
}

/// Leaves the memory mapped after a device fault, because a failed GPU may still run queued
/// launches. The driver unmaps the memory when the process ends.
void WorkerProgram::leave_memory_mapped() {
  (void)engine_.release();
  (void)compute_.release();
}

/// Ends every request with a reason, and sends the reasons before the sockets close.
void WorkerProgram::shut_down_server() {
  engine_->end_all(worker_stopping());
  serving_->server().deliver(engine_->take_events());
  serving_->close(tenant_io_);
  // The usage records of the ended requests are already queued in the link.
  (void)broker_->link().await_usage_reports();
}

void WorkerProgram::watch_signals() {
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    on_signal(number);
    watch_signals();
  });
}

void WorkerProgram::on_signal(int number) {
  if (number == SIGHUP && !stop_) return void(reload_waits_ = true);
  if (number == SIGHUP) return reload_configuration(options_, reload_, *loop_);
  spdlog::info("stopping signal={}", number);
  if (!serving_) exit_at_once(128 + number);  // nothing is served yet
  if (stop_ && number == SIGTERM) return stop_->drain(options_.drain_timeout);
  notify_service_manager("STOPPING=1\nSTATUS=Stopping");
  loop_->stop();
}

}  // namespace

Result<void> run_worker(const WorkerOptions& options, ReloadOptions reload) {
  spdlog::info("starting model={}", options.model_path);
  OpenedModel model = TRY(OpenedModel::open(options));
  spdlog::info("model opened model=\"{}\" vocabulary={}", model.config.name,
               model.tokenizer.n_vocab());
  WorkerProgram program(options, std::move(reload), std::move(model));
  TRY(program.start());
  return program.run();
}

}  // namespace leasehold
