#include "broker/server/server.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "broker/decide/deciders.hpp"
#include "broker/memory/agent_memory.hpp"
#include "broker/memory/device_agent_link.hpp"
#include "broker/memory/host_memory.hpp"
#include "broker/server/connections/operators.hpp"
#include "broker/server/lists.hpp"
#include "broker/server/views.hpp"
#include "broker/supervise/exit_observer.hpp"
#include "common/log.hpp"
#include "common/machine/service_manager.hpp"

namespace leasehold {
namespace {

namespace asio = boost::asio;

/// How often worker segments are polled while leases wait for quiet.
constexpr auto kQuietInterval = std::chrono::microseconds(200);
/// How long a stopping broker waits for all leases to be fenced.
constexpr auto kStopTimeout = std::chrono::milliseconds(1500);
/// Timeout for a worker's reply, as a multiple of the fence timeout.
constexpr int kCallTimeoutFactor = 5;

}  // namespace

BrokerServer::BrokerServer(asio::io_context& io, StartupState startup,
                           ServerDependencies dependencies, const BrokerOptions& options)
    : io_(io),
      startup_(std::move(startup)),
      host_(io, memory_),
      device_(make_device_memory(dependencies.agent)),
      fd_store_(dependencies.fd_store),
      spill_(io, std::move(dependencies.spill)),
      links_(io, worker_handlers()),
      replies_(table_, lent_memory(), links_),
      effects_({.io = io_,
                .table = table_,
                .memory = lent_memory(),
                .host = host_,
                .spill = spill_,
                .links = links_,
                .quiet = quiet_,
                .replies = replies_,
                .log = log_,
                .journal = *startup_.journal,
                .fd_store = fd_store_,
                .call_timeout = kCallTimeoutFactor * options.fence_timeout,
                .find_peer = [this](ConnectionId id) { return connections_.find(id); }},
               [this](Event event) { loop_.post(std::move(event)); }),
      loop_(state_, clock_, effects_),
      ahead_clearing_(io, state_, host_, options.clear_ahead_bytes),
      rates_(options.worker_uids),
      connections_(io, std::move(dependencies.acceptor), connection_handlers(), clock_,
                   ConnectionAdmission(rates_, options.worker_uids)),
      previous_holders_(
          io, [this](const ProcessIdentity& it) { loop_.post(PreviousHolderExited{it}); }),
      dispatch_(dispatch_hooks(), {options.worker_uids, options.observer_uids}),
      quiet_timer_(io),
      table_is_writable_(startup_.table_kept &&
                         std::ranges::any_of(options.worker_uids, is_operator)),
      stop_timer_(io),
      signals_(io, SIGTERM, SIGINT, SIGHUP),
      allow_memory_check_(options.allow_memory_check),
      reload_(std::move(dependencies.reload)),
      config_(options.config) {
  loop_.on_idle = [this] { after_events(); };
}

LentMemory& BrokerServer::lent_memory() {
  if (device_ != nullptr) return *device_;
  return host_;
}

/// Creates the memory of the device, if there is one. When the agent ends, the objects are dropped
/// before DeviceLost is decided.
std::unique_ptr<LentMemory> BrokerServer::make_device_memory(DeviceAgentLink* agent) {
  if (agent == nullptr) return nullptr;
  auto memory = std::make_unique<AgentMemory>(*agent);
  agent->set_handlers({.on_lost =
                           [this, raw = memory.get()](const Error& why) {
                             raw->forget_all();
                             loop_.post(DeviceLost{why.detail});
                           },
                       .on_recovered = [this] { loop_.post(DeviceRecovered{}); }});
  return memory;
}

/// Order: first worker segments, then lease words, then the effects of recovery, then new
/// connections.
Result<void> BrokerServer::start(KeptDescriptors kept) {
  deadline_timer_ = TRY(AsyncBoottimeTimer::create(io_, [this] { loop_.post(Tick{}); }));
  wakeup_timer_ = TRY(AsyncBoottimeTimer::create(io_, [this] { wake_up(); }));
  restore_workers(kept);
  for (const auto& word : startup_.recovered.words) {
    table_.restore(word.lease, word.to, word.reason);
  }
  loop_.begin(startup_.recovered.effects);
  watch_previous_holders();
  watch_signals();
  arm_wakeup();
  connections_.start();
  notify_service_manager("READY=1");
  return {};
}

void BrokerServer::restore_workers(KeptDescriptors& kept) {
  for (const auto& [id, worker] : state_.workers.all()) {
    if (!startup_.kept_workers.contains(id)) {
      watch_orphan(worker);
      continue;
    }
    restore_spill(worker);  // before the link, because that may find that the worker has exited
    const auto restored = links_.restore(id, {.segment = kept.take(kept::segment(id.value)),
                                              .wakeup_fd = kept.take(kept::wakeup_fd(id.value)),
                                              .pidfd = kept.take(kept::pidfd(id.value))});
    if (restored) continue;
    spdlog::warn("could not restore a worker's descriptors attachment={} detail=\"{}\"", id.value,
                 restored.error().detail);
    watch_orphan(worker);
  }
}

void BrokerServer::restore_spill(const Worker& worker) {
  auto node = startup_.kept_spills.extract(worker.id);
  if (node.empty()) return;
  const auto restored = spill_.restore(worker.id, worker.uid, std::move(node.mapped()));
  if (restored) return;
  spdlog::warn("could not restore a spill file attachment={} detail=\"{}\"", worker.id.value,
               restored.error().detail);
}

/// Watches a worker whose descriptors were not kept. Recovery has handled a worker that exited
/// before; if it exited since, this finds it.
void BrokerServer::watch_orphan(const Worker& worker) {
  const ProcessIdentity process{worker.pid, worker.start_ticks};
  if (auto pidfd = open_pidfd(process)) return links_.watch_orphan(worker.id, *std::move(pidfd));
  if (const auto exit = ExitObserver::observe(worker.id, process)) {
    asio::post(io_, [this, proof = *exit] { loop_.post(WorkerExited{proof}); });
  }
}

void BrokerServer::watch_previous_holders() {
  state_.leases.for_each_open([this](const LeaseRecord& record) {
    const bool unclaimed = record.is(LeaseState::Live) && record.holder_process.pid != 0 &&
                           record.scope == wire::LeaseScope::Tenant;
    if (unclaimed) previous_holders_.watch(record.holder_process);
  });
}

Connections::Handlers BrokerServer::connection_handlers() {
  return {.on_call =
              [this](ConnectionId id, const std::string& method, control::Payload params,
                     control::Responder respond) {
                const auto peer = connections_.find(id);
                dispatch_.call(method,
                               {id, peer->credentials(), std::move(params), std::move(respond)});
                links_.drop_prepared(id);
              },
          .on_notification =
              [this](ConnectionId id, const std::string& method, control::Payload params) {
                const auto peer = connections_.find(id);
                dispatch_.notification(method, id, peer->credentials(), params);
              },
          .on_closed =
              [this](ConnectionId id) {
                rates_.forget(id);
                loop_.post(ConnectionClosed{id});
              },
          .on_holder_exit = [this](ConnectionId id) { loop_.post(HolderExited{id}); },
          .throttle =
              [this](uid_t uid, std::size_t weight) {
                return rates_.admit_line(uid, weight, clock_.now());
              },
          .on_change = [this] { arm_wakeup(); }};
}

WorkerLinks::Handlers BrokerServer::worker_handlers() {
  return {.on_exit = [this](ProcessExit proof) { loop_.post(WorkerExited{proof}); },
          .on_wakeup = [this] { observe_quiet(); }};
}

DispatchHooks BrokerServer::dispatch_hooks() {
  return {
      .wait_for_answer =
          [this](control::Responder respond) { return replies_.add(std::move(respond)); },
      .watch_holder = [this](ConnectionId id) { return connections_.watch_holder(id); },
      .start_ticks = [this](ConnectionId id) { return connections_.start_ticks(id); },
      .prepare_worker =
          [this](ConnectionId id, const wire::WorkerAttach& attach) {
            return prepare_worker(id, attach);
          },
      .take_memory =
          [this](ConnectionId id, const wire::LeaseRedeliver& redeliver,
                 std::vector<UniqueFd> fds) { return take_memory(id, redeliver, std::move(fds)); },
      .open_spill = [this](ConnectionId id,
                           control::Responder respond) { open_spill(id, std::move(respond)); },
      .query =
          [this](const Query& query, const control::Json& params) {
            return query.answer({.state = state_,
                                 .log = log_,
                                 .memory = memory_,
                                 .spill = spill_,
                                 .table = table_,
                                 .journal = *startup_.journal,
                                 .started = started_,
                                 .now = clock_.now(),
                                 .allow_memory_check = allow_memory_check_,
                                 .journal_faults = effects_.journal_faults()},
                                params);
          },
      .post = [this](Event event) { loop_.post(std::move(event)); },
      .admit_events =
          [this](ConnectionId id, std::size_t reported) {
            const std::size_t admitted = rates_.admit_events(id, reported, clock_.now());
            if (rates_.has_dropped()) arm_wakeup();
            return admitted;
          }};
}

/// Lends the worker a spill file. The file is stored for a restart before the worker gets it. If
/// the call fails, the worker serves without a file.
void BrokerServer::open_spill(ConnectionId id, control::Responder respond) {
  const Worker* worker = state_.workers.find_by_connection(id);
  if (worker == nullptr || worker->state > WorkerState::Ready)
    return respond(fail(Errc::PermissionDenied, "call worker.attach first"));
  const bool is_new = spill_.find(worker->id) == nullptr;
  spill_.lend(
      worker->id, worker->uid,
      [this, is_new, worker = worker->id,
       respond = std::move(respond)](Result<SpillSpace::File> file) mutable {
        if (!file) {
          spdlog::warn("worker gets no spill file attachment={} error={} detail=\"{}\"",
                       worker.value, name(file.error().code), file.error().detail);
          return respond(std::unexpected(std::move(file).error()));
        }
        control::Payload reply{.body = wire::SpillOpened{.size_bytes = file->size_bytes}.to_json()};
        if (file->fd) {
          if (is_new) effects_.keep(kept::spill(worker.value), file->fd);
          spdlog::info("spill file lent attachment={} size_bytes={}", worker.value,
                       file->size_bytes);
          reply.fds.push_back(std::move(file->fd));
        }
        respond(std::move(reply));
      });
}

Result<void> BrokerServer::prepare_worker(ConnectionId id, const wire::WorkerAttach& attach) {
  if (!attach.resume) return links_.prepare(id, connections_.find(id));
  links_.prepare_resume(id, connections_.find(id));
  return {};
}

/// Takes redelivered memory. Accepts only extents that the state lists for this worker, and only
/// the objects that were granted.
Result<void> BrokerServer::take_memory(ConnectionId id, const wire::LeaseRedeliver& redeliver,
                                       std::vector<UniqueFd> fds) {
  TRY(check_redelivery(state_, id, redeliver));
  if (fds.size() != redeliver.extents.size()) {
    return fail(Errc::BadRequest, fmt::format("{} extents came with {} descriptors; send one for "
                                              "each extent",
                                              redeliver.extents.size(), fds.size()));
  }
  for (std::size_t i = 0; i < fds.size(); ++i) {
    TRY(memory_.redeliver(redeliver.extents[i], std::move(fds[i])));
  }
  return {};
}

/// Runs after an event and all events that followed from it: arms the timers for what is still
/// pending.
void BrokerServer::after_events() {
  deadline_timer_->arm(next_deadline(state_));
  observe_quiet();
  connections_.bound_output();
  ahead_clearing_.poll();
  if (table_.has_detected_tampering()) guard_table();
  wakeups_.status_changed();
  arm_wakeup();
  if (state_.stopping && leases_not_fenced(state_) == 0) io_.stop();
}

/// Continues the watches of BeginQuietWatch: after every event, when a worker signals its
/// wakeup_fd, and every kQuietInterval as long as a watch waits.
void BrokerServer::observe_quiet() {
  if (!quiet_.is_waiting()) return;
  std::vector<LaunchQuiet> proofs = quiet_.observe();
  if (quiet_.is_waiting()) recheck_soon();
  if (!proofs.empty()) loop_.post(QuietObserved{std::move(proofs), clock_.now()});
}

void BrokerServer::recheck_soon() {
  if (std::exchange(recheck_armed_, true)) return;
  quiet_timer_.expires_after(kQuietInterval);
  quiet_timer_.async_wait([this](const boost::system::error_code& error) {
    recheck_armed_ = false;
    if (!error) observe_quiet();
  });
}

/// Repairs the table from the broker's copy, and then posts what was changed.
void BrokerServer::guard_table() {
  auto tampered = table_.repair();
  if (!tampered.empty()) loop_.post(TableTampered{std::move(tampered)});
}

void BrokerServer::check_connections() {
  if (const std::uint64_t dropped = rates_.take_dropped()) {
    spdlog::warn("dropped worker events beyond the rate limit events={}", dropped);
  }
  connections_.close_silent();
  if (const auto report = connections_.take_report()) {
    spdlog::warn("connections reached a limit refused={} displaced={} silent={} bytes={}",
                 report->refused, report->displaced, report->silent, report->bytes);
  }
}

/// Arms the timer for the next wakeup. While no timeout runs, a long sleep of the loop is not a
/// stall.
void BrokerServer::arm_wakeup() {
  for (const auto& [id, worker] : state_.workers.all())
    table_is_writable_ = table_is_writable_ || is_operator(worker.uid);
  const Wakeups::Reasons reasons{
      .table_is_writable = table_is_writable_,
      .awaits_timeout = awaits_timeout(state_),
      .connections_need_checks = connections_.has_pending_checks() || rates_.has_dropped()};
  if (!reasons.awaits_timeout) loop_.rest();
  const auto next = wakeups_.next(reasons, clock_.now());
  if (!next || (wakeup_at_ && *wakeup_at_ <= *next)) return;
  wakeup_at_ = next;
  wakeup_timer_->arm(next);
}

void BrokerServer::wake_up() {
  wakeup_at_.reset();
  loop_.poll();
  if (table_is_writable_) guard_table();
  check_connections();
  report_status();
  arm_wakeup();
}

/// Sends the status, which also feeds the watchdog. If the loop hangs, the service manager gets
/// nothing and restarts the broker.
void BrokerServer::report_status() {
  if (!wakeups_.take_status_due(clock_.now())) return;
  notify_service_manager(fmt::format("WATCHDOG=1\nSTATUS=Serving {} workers, {} tenants, {} leases",
                                     state_.workers.all().size(), state_.tenants.all().size(),
                                     leases_not_fenced(state_)));
}

void BrokerServer::watch_signals() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal_number) {
    if (error) return;
    if (signal_number != SIGHUP) return stop(signal_number);
    reload_configuration();
    watch_signals();
  });
}

/// Reads the configuration again. If the file has an error, nothing changes. Leases and workers are
/// not affected.
void BrokerServer::reload_configuration() {
  const auto read = reload_();
  const auto* wanted = std::get_if<BrokerOptions>(&read);
  if (wanted == nullptr)
    return spdlog::error("configuration not reloaded; correct it and reload again");
  const ConfigReload reload = reload_config(config_, wanted->config,
                                            {"log-level", "reclaim-grace-ms", "adopt-grace-ms",
                                             "max-engine-leases", "max-shared-blocks"});
  set_log_level(wanted->log_level);
  loop_.post(ConfigReloaded{.reclaim_grace = wanted->reclaim_grace,
                            .adopt_grace = wanted->adopt_grace,
                            .max_engine_leases = wanted->max_engine_leases,
                            .max_shared_blocks = wanted->max_shared_blocks});
  log_reload(reload);
}

void BrokerServer::stop(int signal_number) {
  spdlog::info("broker is stopping and revokes all leases signal={}", signal_number);
  notify_service_manager("STOPPING=1");
  connections_.stop_accepting();
  stop_timer_.expires_after(kStopTimeout);
  stop_timer_.async_wait([this](const boost::system::error_code&) {
    spdlog::warn("stopping before all leases are fenced open={}", leases_not_fenced(state_));
    io_.stop();
  });
  loop_.post(Shutdown{});
}

}  // namespace leasehold
