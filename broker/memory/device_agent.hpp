/// The broker's end of its device agent: starts it, talks to it, starts another when it ends.
///
/// Lifetime: the io_context outlives it; the agent's process ends with this object. Threads: the
/// loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "broker/memory/agent_calls.hpp"
#include "common/child_process.hpp"
#include "ipc/control/messages_agent.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold {

class DeviceAgent final : public AgentCalls {
 public:
  struct Config {
    std::string program;  ///< Empty: the one beside this broker's.
    int ordinal = 0;
  };
  struct Handlers {
    std::function<void(const Error& why)> on_lost;  ///< What it allocated is released.
    std::function<void()> on_recovered;
  };

  /// Waits until it serves; runs `io` meanwhile. Errors: FileNotFound (no such program), NoDevice,
  /// DeviceUnsupported and what else the driver says, TimedOut, SystemError.
  static Result<std::unique_ptr<DeviceAgent>> start(boost::asio::io_context& io, Config config);
  DeviceAgent(const DeviceAgent&) = delete;
  DeviceAgent& operator=(const DeviceAgent&) = delete;
  ~DeviceAgent() override;

  void set_handlers(Handlers handlers) { handlers_ = std::move(handlers); }

  /// The card, as the first agent named it.
  const wire::AgentDevice& card() const { return card_; }
  pid_t pid() const { return child_ ? child_->pid() : 0; }

  /// One that hangs is ended. It hangs when it has answered none of its calls for a while: one at
  /// the end of many may wait long.
  void call(std::string_view method, control::Json params,
            control::Peer::ReplyHandler on_reply) override;
  void post(Then then) override;
  void after(Duration pause, Then then) override;

 private:
  DeviceAgent(boost::asio::io_context& io, Config config)
      : io_(io), config_(std::move(config)), restart_timer_(io), call_timer_(io) {}
  /// Called and not answered, by number.
  using Calls = std::map<std::uint64_t, control::Peer::ReplyHandler>;
  void answered(std::uint64_t number, Result<control::Payload> reply);
  void arm_call_timer();
  void fail_pending_calls();
  Result<void> spawn_agent();
  void query_card(std::function<void(Result<wire::AgentDevice>)> then);
  void lost(const Error& why);
  void restart_agent();
  void schedule_agent_restart();

  boost::asio::io_context& io_;
  Config config_;
  Handlers handlers_;
  wire::AgentDevice card_;
  std::optional<Child> child_;
  std::shared_ptr<control::Peer> peer_;
  boost::asio::steady_timer restart_timer_;
  boost::asio::steady_timer call_timer_;  // anew with every answer
  std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
  std::uint64_t last_call_ = 0;
  int process_ = 0;     // the end of an earlier one may be told late
  bool ready_ = false;  // its card was read
  int failures_ = 0;    // in a row: starts that came to nothing, or soon ended
  TimePoint ready_since_;
};

}  // namespace leasehold
