/// The broker's event loop: one thread, one io_context, all components connected.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <vector>

#include "broker/server/ahead_clearing.hpp"
#include "broker/server/async_boottime_timer.hpp"
#include "broker/server/broker_loop.hpp"
#include "broker/server/connections/connections.hpp"
#include "broker/server/connections/holder_watches.hpp"
#include "broker/server/connections/rate_limits.hpp"
#include "broker/server/dispatch.hpp"
#include "broker/server/effects.hpp"
#include "broker/server/start/fd_keeper.hpp"
#include "broker/server/start/startup_state.hpp"
#include "broker/server/wakeups.hpp"

namespace leasehold {

/// The objects that the server needs. Those passed by reference or pointer outlive the server.
struct ServerDependencies {
  boost::asio::local::stream_protocol::acceptor acceptor;
  FdKeeper& fd_store;
  DeviceAgentLink* agent = nullptr;  ///< Null: the broker lends host memory.
  SpillConfig spill = {};
  ReloadOptions reload;
};

/// Lifetime: the io_context outlives the server and does not run after it. Threads: the
/// io_context's thread.
class BrokerServer {
 public:
  BrokerServer(boost::asio::io_context& io, StartupState startup, ServerDependencies dependencies,
               const BrokerOptions& options);
  /// Restores workers and lease words, performs the effects of recovery, then accepts connections.
  /// Errors: SystemError.
  Result<void> start(KeptDescriptors kept);
  void write_events_to(events::EventFile file) { log_.append_to_file(std::move(file)); }

 private:
  Connections::Handlers connection_handlers();
  WorkerLinks::Handlers worker_handlers();
  DispatchHooks dispatch_hooks();
  void restore_workers(KeptDescriptors& kept);
  void restore_spill(const Worker& worker);
  void watch_orphan(const Worker& worker);
  void watch_previous_holders();
  void after_events();
  void observe_quiet();
  void recheck_soon();
  void guard_table();
  void check_connections();
  void report_status();
  void arm_wakeup();
  void wake_up();
  std::unique_ptr<LentMemory> make_device_memory(DeviceAgentLink* agent);
  LentMemory& lent_memory();
  void watch_signals();
  void stop(int signal_number);
  void reload_configuration();
  void open_spill(ConnectionId id, control::Responder respond);
  Result<void> prepare_worker(ConnectionId id, const wire::WorkerAttach& attach);
  Result<void> take_memory(ConnectionId id, const wire::LeaseRedeliver& redeliver,
                           std::vector<UniqueFd> fds);

  boost::asio::io_context& io_;
  SystemClock clock_;
  const TimePoint started_ = clock_.now();
  StartupState startup_;
  State& state_ = startup_.recovered.state;
  LeaseTable& table_ = startup_.table;
  MemoryStore& memory_ = startup_.memory;
  HostMemory host_;
  std::unique_ptr<LentMemory> device_;  ///< Null: the broker lends host memory.
  EventLog log_;
  FdKeeper& fd_store_;
  SpillSpace spill_;
  QuietObserver quiet_;
  WorkerLinks links_;
  Replies replies_;
  ServerEffects effects_;
  BrokerLoop loop_;
  AheadClearing ahead_clearing_;
  RateLimits rates_;
  Connections connections_;
  HolderWatches previous_holders_;
  Dispatch dispatch_;
  std::unique_ptr<AsyncBoottimeTimer> deadline_timer_;
  boost::asio::steady_timer quiet_timer_;
  Wakeups wakeups_{service_manager_of_this_process()};
  std::unique_ptr<AsyncBoottimeTimer> wakeup_timer_;
  std::optional<TimePoint> wakeup_at_;  ///< When the timer fires. Nothing: it is not armed.
  /// True once a worker that runs as an operator has attached: that worker, or a process that it
  /// started, can write to the table.
  bool table_is_writable_;
  boost::asio::steady_timer stop_timer_;
  boost::asio::signal_set signals_;
  bool recheck_armed_ = false;
  bool allow_memory_check_;
  ReloadOptions reload_;
  ConfigValues config_;
};

}  // namespace leasehold
