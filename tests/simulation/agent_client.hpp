/// The broker's end of its device agent. It does what DeviceAgentLink (broker/memory) does, but
/// with a process, a socket and timers of the simulated machine. The product's AgentMemory runs on
/// it.
///
/// Lifetime: the broker's. Threads: one.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "broker/memory/agent_calls.hpp"
#include "tests/simulation/model_agent.hpp"

namespace leasehold::simulation {

class AgentClient final : public AgentCalls {
 public:
  struct Handlers {
    std::function<void()> on_lost;
    std::function<void()> on_restarted;
  };
  /// Starts the first agent; it serves immediately.
  AgentClient(Dependencies deps, Process& broker, Handlers handlers);

  void call(std::string_view method, control::Json params,
            control::Peer::ReplyHandler on_reply) override;
  void post(Then then) override { posted_.push_back(std::move(then)); }
  void after(Duration pause, Then then) override;

  /// Runs the next posted task; false when none is posted.
  bool run_posted();
  /// Pending calls are failing one by one; no other event is handled until all have failed.
  bool is_failing() const { return is_failing_; }
  void fail_next();
  /// Fires timers, including the timeout for an agent that hangs.
  void poll_timers();
  /// The broker died: drops all pending calls and tasks.
  void end();

  std::optional<TimePoint> next_due() const;
  bool has_pending_work() const {
    return !calls_.empty() || !posted_.empty() || !timers_.empty() || !serves_;
  }
  Agent& agent() const { return *agent_; }

 private:
  void begin_process();
  void start_another();
  void closed(const Process& agent);
  void answered(std::uint64_t number, Result<control::Payload> reply);
  void send(std::uint64_t number, std::string_view method, control::Json params);
  void expect_answers();

  Dependencies deps_;
  Process& broker_;
  Handlers handlers_;
  Agent* agent_ = nullptr;
  Connection* connection_ = nullptr;
  std::map<std::uint64_t, control::Peer::ReplyHandler> calls_;
  std::deque<Then> posted_;
  std::multimap<TimePoint, Then> timers_;
  std::uint64_t last_call_ = 0;
  std::optional<TimePoint> give_up_;
  bool serves_ = true;
  bool is_failing_ = false;
};

}  // namespace leasehold::simulation
