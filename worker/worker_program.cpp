#include "worker/worker_program.hpp"
#include "ipc/control/socket_file.hpp"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <future>
#include <thread>

#include "common/process.hpp"
#include "ipc/control/event_file.hpp"
#include "worker/compute.hpp"
#include "worker/engine/engine_loop.hpp"
#include "worker/lease/broker_session.hpp"
#include "worker/lease/deadline_watcher.hpp"
#include "worker/lease/lease_service.hpp"
#include "worker/lease/weights_source.hpp"
#include "worker/load_progress.hpp"
#include "worker/opened_model.hpp"
#include "worker/serve/tenant_server.hpp"

namespace leasehold {
namespace {

constexpr auto kCloseWaitInterval = std::chrono::milliseconds(5);
constexpr int kMaxCloseWaits = 200;
constexpr auto kBrokerLostPollInterval = std::chrono::milliseconds(100);

/// One line a step, for those who asked for it.
void log_step(std::optional<events::EventFile>& file, const StepReport& report) {
  if (!file || !report.ran) return;
  const auto written = file->append(report.summary, report.decided_at);
  if (written) return;
  spdlog::error("no more steps go into the event log reason=\"{}\"", written.error().detail);
  file.reset();
}

class WorkerProgram final : public RevocationObserver {
 public:
  WorkerProgram(const WorkerOptions& options, OpenedModel model)
      : options_(options), model_(std::move(model)), probe_(options.slow_motion) {}
  ~WorkerProgram() override;

  Result<void> start();
  Result<void> run();

  void completed_early(const Completed& completed, const events::ForwardRevoked& what,
                       TimePoint at) noexcept override;
  void engine_refused(const events::ForwardRevoked& what, TimePoint at) noexcept override;
  void lease_found_revoked(const events::ForwardRevoked& what, TimePoint at) noexcept override;
  void quiet_progress() noexcept override;

 private:
  Result<void> open_session();
  Result<void> build_engine();
  Result<void> start_serving();
  std::function<void(LeaseId, std::move_only_function<void()>)> quiesce();
  Result<void> announce_ready();
  void shut_down_server();
  void leave_memory_mapped();
  Result<void> on_io_thread(const std::function<Result<void>()>& work);
  Result<void> bind_weights();
  Result<void> restore_weights(Engine& engine);
  EngineLoop::Hooks loop_hooks();
  void start_io();
  void stop_io();
  void broker_disconnected(bool disconnected);
  void stop_when_leases_end();
  void watch_signals();

  WorkerOptions options_;
  OpenedModel model_;
  SystemClock clock_;
  UnitProbe probe_;
  RunningRequests running_requests_;
  // Before what may hold mappings when the process ends, handlers that never ran among them.
  std::unique_ptr<Compute> compute_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> io_work_{
      io_.get_executor()};
  boost::asio::signal_set signals_{io_, SIGTERM, SIGINT};
  boost::asio::steady_timer lost_timer_{io_};
  std::optional<TenantServer::Acceptor> acceptor_;  // until the doors open
  std::optional<control::SocketFile> socket_file_;
  std::optional<events::EventFile> event_file_;  // the engine's thread alone writes
  std::unique_ptr<BrokerSession> broker_;
  std::optional<ThreadGate> commit_gate_;
  std::unique_ptr<WeightsSource> weights_source_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EngineLoop> loop_;
  std::unique_ptr<LeaseService> leases_;
  boost::asio::thread_pool mapper_{1};  // these end before what their work is done for
  boost::asio::thread_pool unmapper_{1};
  std::unique_ptr<TenantServer> server_;
  boost::asio::thread_pool parser_{1};  // likewise
  std::unique_ptr<DeadlineWatcher> watcher_;
  std::thread io_thread_;
};

WorkerProgram::~WorkerProgram() {
  stop_io();
  if (socket_file_) socket_file_->remove();
}

// ---------------------------------------------------------------------------------------- start-up

Result<void> WorkerProgram::start() {
  // First what costs nothing: a bad path is better known before the weights are loaded.
  acceptor_.emplace(TRY(TenantServer::listen(io_, options_.listen_path)));
  socket_file_.emplace(options_.listen_path);
  start_io();
  if (!options_.event_log.empty()) {
    event_file_.emplace(TRY(events::EventFile::open(options_.event_log)));
  }
  TRY(open_session());
  TRY(build_engine());
  TRY(bind_weights());
  return announce_ready();
}

Result<void> WorkerProgram::open_session() {
  BrokerSession::Handlers handlers{
      .on_call =
          [this](const std::string& method, control::Payload params, control::Responder respond) {
            if (method == wire::WorkerPing::kMethod) {
              return respond(control::Payload{.body = wire::Empty{}.to_json()});
            }
            if (leases_) return leases_->on_call(method, std::move(params), std::move(respond));
            respond(fail(Errc::NoModelLoaded, "the worker is still loading"));
          },
      .on_connection_changed = [this](bool disconnected) { broker_disconnected(disconnected); },
      .on_broker_lost =
          [this](const Error& why) {
            spdlog::error("broker lost reason=\"{}\"", why.detail);
            if (server_) stop_when_leases_end();
          }};
  broker_ = TRY(BrokerSession::open(io_, clock_,
                                    {.broker_socket = options_.broker_socket,
                                     .worker_name = options_.name,
                                     .timeout = options_.broker_timeout},
                                    std::move(handlers)));
  const Attachment& attachment = broker_->attachment();
  spdlog::info("attached to the broker worker={} slots={}", attachment.worker.value,
               attachment.table.slot_count());
  return {};
}

Result<void> WorkerProgram::build_engine() {
  const GateDependencies dependencies{.worker = broker_->attachment().worker,
                                      .table = &broker_->attachment().table,
                                      .segment = &broker_->attachment().segment,
                                      .stops = &running_requests_.stops(),
                                      .probe = &probe_};
  compute_ = TRY(make_compute(
      options_, {.name = broker_->attachment().device, .uuid = broker_->attachment().device_uuid},
      Engine::backend_limits(model_.config, SchedulerLimits{}), dependencies));
  commit_gate_.emplace(make_gates(dependencies, options_.threads, 1).front());
  engine_ = std::make_unique<Engine>(
      EngineConfig{.model = model_.config, .kv_type = options_.kv_type, .limits = {}},
      Engine::Dependencies{.backend = &compute_->backend(),
                           .table = &broker_->attachment().table,
                           .running_requests = &running_requests_,
                           .commit_gate = &*commit_gate_,
                           .observer = this,
                           .clock = &clock_,
                           .broker_disconnected = &broker_->is_disconnected(),
                           .tokenizer = &model_.tokenizer});
  weights_source_ = std::make_unique<WeightsSource>(
      model_.file, model_.config, model_.plan,
      WeightsSource::Dependencies{.broker = &broker_->link(),
                                  .table = &broker_->attachment().table,
                                  .backend = &compute_->backend(),
                                  .progress = load_progress_on_terminal(),
                                  .regions = &compute_->mapper()});
  loop_ = std::make_unique<EngineLoop>(*engine_, loop_hooks());
  return {};
}

EngineLoop::Hooks WorkerProgram::loop_hooks() {
  return {.on_report =
              [this](StepReport report) {
                log_step(event_file_, report);
                server_->deliver(std::move(report.events));
              },
          .on_growth =
              [this](const std::vector<GrowthRequest>& growth_requests) {
                leases_->grow(growth_requests);
              },
          .on_weights_lost = [this](Engine& engine) { return restore_weights(engine); }};
}

Result<void> WorkerProgram::bind_weights() {
  engine_->bind_weights(TRY(weights_source_->acquire()));
  spdlog::info("weights bound model=\"{}\" parts={} size_bytes={} backend={}", model_.config.name,
               model_.plan.parts.size(), model_.plan.size_bytes(), compute_->description());
  return {};
}

Result<void> WorkerProgram::restore_weights(Engine& engine) {
  if (broker_->is_disconnected()) {
    return fail(Errc::BrokerLost, "the weights are gone and so is the broker that owned them");
  }
  const auto restored = TRY(weights_source_->restore(engine.weights()));
  if (!restored) return {};
  spdlog::info("weights restored part={}", restored->part);
  if (!restored->from_replaced_file) return {};
  spdlog::warn("weights come from another file than the one this worker was started with part={}",
               restored->part);
  return {};
}

/// On the I/O thread, which alone looks at these from now on; the engine only posts to them.
Result<void> WorkerProgram::start_serving() {
  boost::asio::post(mapper_,
                    [] { use_batch_scheduling(); });  // typed ends are waited for, grants less
  leases_ = std::make_unique<LeaseService>(
      LeaseService::Dependencies{.io = &io_,
                                 .mapper = mapper_.get_executor(),
                                 .unmapper = unmapper_.get_executor(),
                                 .loop = loop_.get(),
                                 .engine = engine_.get(),
                                 .table = &broker_->attachment().table,
                                 .clock = &clock_,
                                 .regions = &compute_->mapper(),
                                 .quiesce = quiesce()});
  leases_->set_broker(&broker_->link());
  server_ = std::make_unique<TenantServer>(
      TenantServer::Dependencies{.io = &io_,
                                 .loop = loop_.get(),
                                 .running_requests = &running_requests_,
                                 .parser = parser_.get_executor(),
                                 .prompt = {.tokenizer = &model_.tokenizer,
                                            .chat = &model_.chat,
                                            .max_context = model_.config.n_context,
                                            .has_sliding_window = model_.config.has_sliding_window},
                                 .broker = &broker_->link(),
                                 .clock = &clock_,
                                 .token_key = broker_->attachment().token_key});
  server_->serve(std::move(*acceptor_));
  acceptor_.reset();
  return {};
}

/// Between two steps nothing is under way on the host; on a card something may be in the middle of
/// one and long past what a revoked lease had there.
std::function<void(LeaseId, std::move_only_function<void()>)> WorkerProgram::quiesce() {
  return [this](LeaseId, std::move_only_function<void()> done) {
    compute_->backend().when_drained(std::move(done));
  };
}

Result<void> WorkerProgram::announce_ready() {
  TRY(on_io_thread([this] { return start_serving(); }));
  watcher_ = TRY(DeadlineWatcher::start({.running_requests = &running_requests_,
                                         .table = &broker_->attachment().table,
                                         .clock = &clock_,
                                         .broker_disconnected = &broker_->is_disconnected()}));
  const wire::WorkerReady ready{.address = options_.listen_path,
                                .model = model_.config.name,
                                .kv_block_size_bytes = engine_->kv_block_size_bytes()};
  const wire::ExtentShape shape = TRY(broker_->announce_ready(ready, *leases_));
  leases_->set_blocks_per_extent(std::max(1u, shape.blocks_per_extent));
  spdlog::info("ready name={} address={} block_size_bytes={} blocks_per_extent={}", options_.name,
               options_.listen_path, engine_->kv_block_size_bytes(), shape.blocks_per_extent);
  return {};
}

// --------------------------------------------------------------------------------------- the run

Result<void> WorkerProgram::run() {
  Result<void> ran;
  {
    const ScopedCpuAffinity here(options_.compute_cpus);
    ran = loop_->run();
  }
  watcher_.reset();
  const bool lost = broker_->is_lost();
  shut_down_server();
  stop_io();
  if (!ran) leave_memory_mapped();
  if (!ran || !lost) return ran;
  return fail(Errc::BrokerLost,
              "the broker went away and every lease has run out; start this "
              "worker again once a broker is there");
}

/// What was queued on a card that failed may still be running there: nothing is taken from under
/// it. The end of the process does that, behind the card.
void WorkerProgram::leave_memory_mapped() {
  (void)engine_.release();
  (void)compute_.release();
}

/// Every request ends with a reason, and the reasons are on their way before the sockets close.
void WorkerProgram::shut_down_server() {
  engine_->end_all({Errc::Draining, "this worker is stopping; acquire a lease on another"});
  server_->deliver(engine_->take_events());
  (void)on_io_thread([this]() -> Result<void> {
    server_->close();
    return {};
  });
  bool closed = false;
  for (int wait = 0; wait < kMaxCloseWaits && !closed; ++wait) {
    if (wait > 0) std::this_thread::sleep_for(kCloseWaitInterval);
    (void)on_io_thread([&]() -> Result<void> {
      closed = server_->is_closed();
      return {};
    });
  }
}

Result<void> WorkerProgram::on_io_thread(const std::function<Result<void>()>& work) {
  std::promise<Result<void>> promise;
  boost::asio::post(io_, [&] { promise.set_value(work()); });
  return promise.get_future().get();
}

void WorkerProgram::start_io() {
  watch_signals();
  io_thread_ = std::thread([this] {
    request_short_time_slice();
    io_.run();
  });
}

void WorkerProgram::stop_io() {
  io_.stop();
  if (io_thread_.joinable()) io_thread_.join();
}

void WorkerProgram::watch_signals() {
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    spdlog::info("stopping signal={}", number);
    if (server_) return loop_->stop();
    std::_Exit(128 + number);  // still loading: nothing is served, the broker sees the process end
  });
}

void WorkerProgram::broker_disconnected(bool disconnected) {
  if (server_) server_->set_broker_disconnected(disconnected);
}

void WorkerProgram::stop_when_leases_end() {
  loop_->post([this](Engine& engine) {
    if (engine.scheduler().has_work()) return;
    loop_->stop();
  });
  lost_timer_.expires_after(kBrokerLostPollInterval);
  lost_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) stop_when_leases_end();
  });
}

// ------------------------------------------------------------------------------------ revocations

void WorkerProgram::completed_early(const Completed& completed, const events::ForwardRevoked& what,
                                    TimePoint at) noexcept {
  server_->complete_early(completed);
  if (completed.revocation) broker_->link().report(what, at);
}

void WorkerProgram::engine_refused(const events::ForwardRevoked& what, TimePoint at) noexcept {
  broker_->link().report(what, at);
}

void WorkerProgram::lease_found_revoked(const events::ForwardRevoked& what, TimePoint at) noexcept {
  broker_->link().report(what, at);
}

void WorkerProgram::quiet_progress() noexcept {
  const std::uint64_t one = 1;
  // A full counter already rings; nothing else can fail for an eventfd.
  (void)!::write(broker_->attachment().wakeup_fd.get(), &one, sizeof(one));
}

}  // namespace

Result<void> run_worker(const WorkerOptions& options) {
  TRY(exclude_compute_cpus(options.compute_cpus));
  WorkerProgram program(options, TRY(OpenedModel::open(options.model_path, options.weights_scope)));
  TRY(program.start());
  return program.run();
}

}  // namespace leasehold
