/// Starts the device agent process, calls it, and restarts it when it ends.
///
/// Lifetime: the io_context outlives this object; the agent process ends with this object.
/// Threads: the io_context's thread.
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
#include "common/machine/child_process.hpp"
#include "ipc/control/messages/agent.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold {

class DeviceAgentLink final : public AgentCalls {
 public:
  struct Config {
    std::string program;  ///< Empty: leasehold-device-agent in the broker's own directory.
    int ordinal = 0;
  };
  struct Handlers {
    std::function<void(const Error& why)> on_lost;  ///< The agent's allocations are gone.
    std::function<void()> on_recovered;             ///< A new agent serves the same card.
  };

  /// Starts the agent and runs `io` until the agent serves. Errors: FileNotFound (no such program),
  /// NoDevice, DeviceUnsupported and other errors of the driver, TimedOut, SystemError.
  static Result<std::unique_ptr<DeviceAgentLink>> start(boost::asio::io_context& io, Config config);
  DeviceAgentLink(const DeviceAgentLink&) = delete;
  DeviceAgentLink& operator=(const DeviceAgentLink&) = delete;
  ~DeviceAgentLink() override;

  void set_handlers(Handlers handlers) { handlers_ = std::move(handlers); }

  /// The card that the first agent reported.
  const wire::AgentDevice& card() const { return card_; }
  pid_t pid() const { return child_ ? child_->pid() : 0; }

  /// Kills an agent that hangs. An agent hangs when it answers none of its pending calls within the
  /// call timeout; a single call may wait longer behind others.
  void call(std::string_view method, control::Json params,
            control::Peer::ReplyHandler on_reply) override;
  void post(Then then) override;
  void after(Duration pause, Then then) override;

 private:
  DeviceAgentLink(boost::asio::io_context& io, Config config)
      : io_(io), config_(std::move(config)), restart_timer_(io), call_timer_(io) {}
  /// Unanswered calls by number.
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
  boost::asio::steady_timer call_timer_;  // restarted by every reply
  std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
  std::uint64_t last_call_ = 0;
  int process_ = 0;     // number of the current process, to ignore late reports of an earlier one
  bool ready_ = false;  // the current process has reported its card
  int failures_ = 0;    // consecutive starts that failed or ended soon
  TimePoint ready_since_;
};

}  // namespace leasehold
