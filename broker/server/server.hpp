/// The broker's event loop: one thread, one io_context, all components connected.
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>
#include <vector>

#include "broker/memory/agent_memory.hpp"
#include "broker/memory/device_agent_link.hpp"
#include "broker/memory/host_memory.hpp"
#include "broker/server/ahead_clearing.hpp"
#include "broker/server/broker_loop.hpp"
#include "broker/server/connections/connections.hpp"
#include "broker/server/connections/holder_watches.hpp"
#include "broker/server/dispatch.hpp"
#include "broker/server/effects.hpp"
#include "broker/server/loop_timers.hpp"
#include "broker/server/quiet_watches.hpp"
#include "broker/server/server_signals.hpp"
#include "broker/server/start/fd_keeper.hpp"
#include "broker/server/start/startup_state.hpp"

namespace leasehold {

/// The objects that the server needs. Those passed by reference or pointer outlive the server.
struct ServerDependencies {
  boost::asio::local::stream_protocol::acceptor acceptor;
  FdKeeper& fd_store;
  const Clock& clock;
  DeviceAgentLink* agent = nullptr;      ///< Null: the broker lends host memory.
  AgentMemory* device_memory = nullptr;  ///< The memory of `agent`.
  SpillConfig spill = {};
  ReloadOptions reload;
  std::optional<events::EventFile> event_file;
};

/// Lifetime: the io_context outlives the server and does not run after it. Threads: the
/// io_context's thread.
class BrokerServer {
 public:
  BrokerServer(boost::asio::io_context& io, StartupState startup, ServerDependencies dependencies,
               const BrokerOptions& options);
  /// Restores workers and lease words, performs the effects of recovery, then accepts connections.
  /// Errors: SystemError.
  Result<void> start(boost::asio::io_context& io, KeptDescriptors kept);

 private:
  State& state() { return startup_.recovered.state; }
  Connections::Handlers connection_handlers();
  DispatchHooks dispatch_hooks(boost::asio::io_context& io, const Clock& clock,
                               bool allow_memory_check);
  void watch_device(DeviceAgentLink& agent, AgentMemory& memory);
  void restore_workers(KeptDescriptors& kept);
  void restore_spill(const Worker& worker);
  void watch_previous_holders();
  void after_events();
  void open_spill(ConnectionId id, control::Responder respond);
  void pass_to_worker(const std::string& worker_name, const std::string& method,
                      const control::Json& params, PassedCalls::OnReply on_reply);
  Result<void> prepare_worker(ConnectionId id, const wire::WorkerAttach& attach);
  Result<void> take_memory(ConnectionId id, const wire::LeaseRedeliver& redeliver,
                           std::vector<UniqueFd> fds);

  StartupState startup_;
  HostMemory host_;
  EventLog log_;
  SpillSpace spill_;
  QuietWatches quiet_;
  WorkerLinks links_;
  Replies replies_;
  ServerEffects effects_;
  BrokerLoop loop_;
  AheadClearing ahead_clearing_;
  Connections connections_;
  HolderWatches previous_holders_;
  Dispatch dispatch_;
  LoopTimers timers_;
  ServerSignals signals_;
};

}  // namespace leasehold
