#include "broker/server/server.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>

#include "broker/decide/deciders.hpp"
#include "broker/memory/agent_memory.hpp"
#include "broker/memory/host_memory.hpp"
#include "broker/server/boot_timer.hpp"
#include "broker/server/broker_loop.hpp"
#include "broker/server/connections.hpp"
#include "broker/server/dispatch.hpp"
#include "broker/server/effects.hpp"
#include "broker/server/fd_keeper.hpp"
#include "broker/server/holder_watches.hpp"
#include "broker/server/lent_device.hpp"
#include "broker/server/lists.hpp"
#include "broker/server/rate_limits.hpp"
#include "broker/server/startup_state.hpp"
#include "broker/server/views.hpp"
#include "broker/supervise/exit_observer.hpp"
#include "ipc/control/socket_file.hpp"

namespace leasehold {
namespace {

namespace asio = boost::asio;

/// How often worker tampered are read again while somebody waits for quiet.
constexpr auto kQuietInterval = std::chrono::microseconds(200);
/// How often the lease table is compared with the broker's own copy of it.
constexpr auto kGuardInterval = Pulse::kPollInterval;
/// How long a stopping broker waits for its fences.
constexpr auto kStopTimeout = std::chrono::milliseconds(1500);
/// A worker's answer may take as many times the timeout for a fence.
constexpr int kCallTimeout = 5;

/// What a server works with and did not make.
struct ServerDependencies {
  asio::local::stream_protocol::acceptor acceptor;
  FdKeeper& fd_store;
  DeviceAgentLink* agent = nullptr;  ///< None: memory of the machine is lent.
};

class Server {
 public:
  Server(asio::io_context& io, StartupState startup, ServerDependencies dependencies,
         const BrokerOptions& options);
  Result<void> start(KeptDescriptors kept);
  void write_events_to(events::EventFile file) { log_.append_to_file(std::move(file)); }

 private:
  Connections::Handlers connection_handlers();
  WorkerLinks::Handlers worker_handlers();
  DispatchHooks dispatch_hooks();
  void restore_workers(KeptDescriptors& kept);
  void watch_orphan(const Worker& worker);
  void watch_previous_holders();
  void after_events();
  void observe_quiet();
  void recheck_soon();
  void guard_table();
  void guard_soon();
  std::unique_ptr<LentMemory> make_lent_memory(DeviceAgentLink* agent);
  void stop(int signal_number);
  Result<void> prepare_worker(ConnectionId id, const wire::WorkerAttach& attach);
  Result<void> take_memory(ConnectionId id, const wire::LeaseRedeliver& redeliver,
                           std::vector<UniqueFd> fds);

  asio::io_context& io_;
  SystemClock clock_;
  const TimePoint started_ = clock_.now();
  StartupState startup_;
  State& state_ = startup_.recovered.state;
  LeaseTable& table_ = startup_.table;
  MemoryStore& memory_ = startup_.memory;
  std::unique_ptr<LentMemory> lent_;
  EventLog log_;
  FdKeeper& fd_store_;
  QuietObserver quiet_;
  WorkerLinks links_;
  Replies replies_;
  ServerEffects effects_;
  BrokerLoop loop_;
  Connections connections_;
  HolderWatches previous_holders_;
  RateLimits rates_;
  Dispatch dispatch_;
  std::unique_ptr<BootTimer> deadline_timer_;
  asio::steady_timer quiet_timer_;
  asio::steady_timer guard_timer_;
  asio::steady_timer stop_timer_;
  asio::signal_set signals_;
  bool recheck_armed_ = false;
  bool allow_memory_audit_;
};

Server::Server(asio::io_context& io, StartupState startup, ServerDependencies dependencies,
               const BrokerOptions& options)
    : io_(io),
      startup_(std::move(startup)),
      lent_(make_lent_memory(dependencies.agent)),
      fd_store_(dependencies.fd_store),
      links_(io, worker_handlers()),
      replies_(table_, *lent_, links_),
      effects_({io_, table_, *lent_, links_, quiet_, replies_, log_, *startup_.journal, fd_store_,
                kCallTimeout * options.fence_timeout},
               [this](Event event) { loop_.post(std::move(event)); }),
      loop_(state_, clock_, effects_),
      connections_(io, std::move(dependencies.acceptor), connection_handlers(),
                   options.worker_uids),
      previous_holders_(
          io, [this](const ProcessIdentity& it) { loop_.post(PreviousHolderExited{it}); }),
      rates_(options.worker_uids),
      dispatch_(dispatch_hooks(), options.worker_uids),
      quiet_timer_(io),
      guard_timer_(io),
      stop_timer_(io),
      signals_(io, SIGTERM, SIGINT),
      allow_memory_audit_(options.allow_memory_check) {
  loop_.on_idle = [this] { after_events(); };
}

/// An agent that ends takes its objects along before anybody decides what follows from it.
std::unique_ptr<LentMemory> Server::make_lent_memory(DeviceAgentLink* agent) {
  if (agent == nullptr) return std::make_unique<HostMemory>(io_, memory_);
  auto memory = std::make_unique<AgentMemory>(*agent);
  agent->set_handlers({.on_lost =
                           [this, raw = memory.get()](const Error& why) {
                             raw->forget_all();
                             loop_.post(DeviceLost{why.detail});
                           },
                       .on_recovered = [this] { loop_.post(DeviceRecovered{}); }});
  return memory;
}

/// Lines first, then words, then what was decided; whoever connects is heard after all that.
Result<void> Server::start(KeptDescriptors kept) {
  deadline_timer_ = TRY(BootTimer::create(io_, [this] { loop_.post(Tick{}); }));
  restore_workers(kept);
  for (const auto& word : startup_.recovered.words) {
    table_.restore(word.lease, word.state, word.reason);
  }
  loop_.begin(startup_.recovered.effects);
  watch_previous_holders();
  signals_.async_wait([this](const boost::system::error_code& error, int signal_number) {
    if (!error) stop(signal_number);
  });
  guard_soon();
  connections_.start();
  notify_service_manager("READY=1");
  return {};
}

void Server::restore_workers(KeptDescriptors& kept) {
  for (const auto& [id, worker] : state_.workers.all()) {
    if (!startup_.kept_workers.contains(id)) {
      watch_orphan(worker);
      continue;
    }
    const auto restored = links_.restore(id, {.segment = kept.take(kept::segment(id.value)),
                                              .wakeup_fd = kept.take(kept::wakeup_fd(id.value)),
                                              .pidfd = kept.take(kept::pidfd(id.value))});
    if (restored) continue;
    spdlog::warn("what was kept of a worker cannot be used detail=\"{}\"", restored.error().detail);
    watch_orphan(worker);
  }
}

/// One that has exited is among what recovery decided already, or shows here.
void Server::watch_orphan(const Worker& worker) {
  const ProcessIdentity process{worker.pid, worker.start_ticks};
  if (auto pidfd = open_pidfd(process)) return links_.watch_orphan(worker.id, *std::move(pidfd));
  if (const auto exit = ExitObserver::observe(worker.id, process)) {
    asio::post(io_, [this, proof = *exit] { loop_.post(WorkerExited{proof}); });
  }
}

void Server::watch_previous_holders() {
  state_.leases.for_each_open([this](const LeaseRecord& record) {
    const bool unclaimed = record.is(LeaseState::Live) && record.holder_process.pid != 0 &&
                           record.scope == wire::LeaseScope::Tenant;
    if (unclaimed) previous_holders_.watch(record.holder_process);
  });
}

Connections::Handlers Server::connection_handlers() {
  return {
      .on_call =
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
      .admit_connection = [this](uid_t uid) { return rates_.admit_connection(uid, clock_.now()); },
      .throttle = [this](
                      uid_t uid,
                      std::size_t weight) { return rates_.admit_line(uid, weight, clock_.now()); }};
}

WorkerLinks::Handlers Server::worker_handlers() {
  return {.on_exit = [this](ProcessExit proof) { loop_.post(WorkerExited{proof}); },
          .on_wakeup = [this] { observe_quiet(); }};
}

DispatchHooks Server::dispatch_hooks() {
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
      .query =
          [this](const std::string& method, const control::Json& params) {
            return answer_query({state_, log_, memory_, table_, *startup_.journal, started_,
                                 clock_.now(), allow_memory_audit_},
                                method, params);
          },
      .post = [this](Event event) { loop_.post(std::move(event)); },
      .admit_events =
          [this](ConnectionId id, std::size_t reported) {
            return rates_.admit_events(id, reported, clock_.now());
          }};
}

Result<void> Server::prepare_worker(ConnectionId id, const wire::WorkerAttach& attach) {
  if (!attach.resume) return links_.prepare(id, connections_.find(id));
  links_.prepare_resume(id, connections_.find(id));
  return {};
}

/// Only what the books say is this worker's, and only the very objects that were lent.
Result<void> Server::take_memory(ConnectionId id, const wire::LeaseRedeliver& redeliver,
                                 std::vector<UniqueFd> fds) {
  TRY(check_redelivery(state_, id, redeliver));
  if (fds.size() != redeliver.extents.size()) {
    return fail(Errc::BadRequest, fmt::format("{} extents were announced, {} descriptors came",
                                              redeliver.extents.size(), fds.size()));
  }
  for (std::size_t i = 0; i < fds.size(); ++i) {
    TRY(memory_.adopt(redeliver.extents[i], std::move(fds[i])));
  }
  return {};
}

/// After each event and all that followed: what must be watched, and until when.
void Server::after_events() {
  deadline_timer_->arm(next_deadline(state_));
  observe_quiet();
  if (table_.has_detected_tampering()) guard_table();
  if (state_.stopping && leases_not_fenced(state_) == 0) io_.stop();
}

void Server::observe_quiet() {
  if (!quiet_.is_waiting()) return;
  std::vector<LaunchQuiet> proofs = quiet_.observe();
  if (quiet_.is_waiting()) recheck_soon();
  if (!proofs.empty()) loop_.post(QuietObserved{std::move(proofs), clock_.now()});
}

void Server::recheck_soon() {
  if (std::exchange(recheck_armed_, true)) return;
  quiet_timer_.expires_after(kQuietInterval);
  quiet_timer_.async_wait([this](const boost::system::error_code& error) {
    recheck_armed_ = false;
    if (!error) observe_quiet();
  });
}

/// Repaired first, judged afterwards: the broker's own copy is the truth.
void Server::guard_table() {
  auto tampered = table_.repair();
  if (!tampered.empty()) loop_.post(TableTampered{std::move(tampered)});
  if (const std::uint64_t dropped = rates_.take_dropped()) {
    spdlog::warn("workers report faster than events are taken, dropped some events={}", dropped);
  }
  if (const std::uint64_t refused = connections_.take_refused()) {
    spdlog::warn("too many connections, hung up on newcomers connections={}", refused);
  }
}

void Server::guard_soon() {
  guard_timer_.expires_after(kGuardInterval);
  guard_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    loop_.poll();
    guard_table();
    guard_soon();
  });
}

void Server::stop(int signal_number) {
  spdlog::info("stopping, taking all leases back signal={}", signal_number);
  notify_service_manager("STOPPING=1");
  connections_.stop_accepting();
  stop_timer_.expires_after(kStopTimeout);
  stop_timer_.async_wait([this](const boost::system::error_code&) {
    spdlog::warn("stopped without proof for all leases open={}", leases_not_fenced(state_));
    io_.stop();
  });
  loop_.post(Shutdown{});
}

/// The default place may be new; a place somebody chose is theirs to make.
void make_socket_folder(const BrokerOptions& options) {
  const auto folder = std::filesystem::path(options.socket).parent_path();
  std::error_code ignored;  // listening says what is wrong, with the path
  if (folder.filename() == "leasehold") std::filesystem::create_directory(folder, ignored);
}

void keep_for_restart(FdKeeper& fd_store, std::string_view name, const UniqueFd& fd) {
  if (const auto done = fd_store.keep(name, fd); !done) {
    spdlog::warn("not kept for a restart name={} detail=\"{}\"", name, done.error().detail);
  }
}

/// Whoever connected while no broker ran waits in the kept socket and is served first.
Result<asio::local::stream_protocol::acceptor> listen(asio::io_context& io,
                                                      const BrokerOptions& options,
                                                      UniqueFd kept_socket, FdKeeper& fd_store) {
  if (kept_socket) {
    auto again = control::adopt_listener(io, std::move(kept_socket), options.socket);
    if (again) return again;
    spdlog::warn("listening anew detail=\"{}\"", again.error().detail);
    fd_store.remove(kept::kSocket);
  }
  make_socket_folder(options);
  auto acceptor = TRY(control::listen_on(io, options.socket, options.socket_mode));
  keep_for_restart(fd_store, kept::kSocket, UniqueFd(::dup(acceptor.native_handle())));
  return acceptor;
}

}  // namespace

Result<void> run_broker(const BrokerOptions& options) {
  asio::io_context io(1);
  KeptDescriptors kept = TRY(KeptDescriptors::from_service_manager());
  const auto fd_store = make_fd_keeper(kept.stored_names());
  const auto agent = TRY(start_agent(io, options));
  const LentDevice device = TRY(lent_device(options, agent.get()));
  StartupState startup = TRY(load_startup_state(options, device, kept, SystemClock().now()));
  const auto in_use = names_in_use(startup);
  for (const std::string& name : kept.stored_names()) {
    if (!in_use.contains(name)) fd_store->remove(name);
  }
  const bool keep_table = !startup.table_kept && !options.state_dir.empty() && !agent;
  if (keep_table) keep_for_restart(*fd_store, kept::kTable, startup.table.writable_fd());
  auto acceptor = TRY(listen(io, options, kept.take(kept::kSocket), *fd_store));
  const control::SocketFile socket_file(options.socket);
  Server server(io, std::move(startup),
                {.acceptor = std::move(acceptor), .fd_store = *fd_store, .agent = agent.get()},
                options);
  if (!options.event_log.empty()) {
    server.write_events_to(TRY(events::EventFile::open(options.event_log)));
  }
  TRY(server.start(std::move(kept)));
  spdlog::info("broker serves socket={} capacity_bytes={} weights_capacity_bytes={} slots={}",
               options.socket, options.capacity_bytes, options.weights_capacity_bytes,
               options.slots);
  io.run();
  fd_store->remove_all();
  if (!socket_file.remove()) {
    spdlog::warn("left the socket file alone, it is not this broker's any more socket={}",
                 options.socket);
  }
  spdlog::info("broker stopped socket={}", options.socket);
  return {};
}

}  // namespace leasehold
