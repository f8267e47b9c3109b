#include "tests/simulation/agent_client.hpp"

#include <algorithm>

#include "ipc/control/messages/agent.hpp"

namespace leasehold::simulation {
namespace {

constexpr Duration kCallTimeout = std::chrono::seconds(10);
constexpr Duration kRestartPause = std::chrono::milliseconds(100);

}  // namespace

AgentClient::AgentClient(Dependencies deps, Process& broker, Handlers handlers)
    : deps_(deps), broker_(broker), handlers_(std::move(handlers)) {
  begin_process();
}

void AgentClient::begin_process() {
  agent_ = &deps_.machine.spawn<Agent>(deps_);
  connection_ = &deps_.machine.connect(broker_, *agent_);
  connection_->ends[Connection::kClient].on_closed = [this, agent = agent_] { closed(*agent); };
  connection_->ends[Connection::kServer].on_closed = [agent = agent_] {
    agent->kill_pending = true;  // no process is left to serve
  };
}

void AgentClient::send(std::uint64_t number, std::string_view method, control::Json params) {
  deps_.machine.send(
      *connection_, Connection::kServer,
      [this, number, method, params = std::move(params), agent = agent_, on = connection_] {
        const auto reply =
            std::make_shared<Result<control::Payload>>(agent->answer(method, params));
        deps_.machine.send(*on, Connection::kClient,
                           [this, number, reply] { answered(number, std::move(*reply)); });
      });
}

/// A connection that is closing replies by itself, when its end is reported.
void AgentClient::call(std::string_view method, control::Json params,
                       control::Peer::ReplyHandler on_reply) {
  if (!serves_ || is_failing_) {
    return post([on_reply = std::move(on_reply)]() mutable {
      on_reply(fail(Errc::ConnectionLost, "there is no device agent"));
    });
  }
  const std::uint64_t number = ++last_call_;
  calls_.emplace(number, std::move(on_reply));
  if (calls_.size() == 1) expect_answers();
  send(number, method, std::move(params));
}

void AgentClient::expect_answers() {
  give_up_.reset();
  if (!calls_.empty()) give_up_ = deps_.machine.clock.now() + kCallTimeout;
}

void AgentClient::answered(std::uint64_t number, Result<control::Payload> reply) {
  auto call = calls_.extract(number);
  if (!call) return;
  expect_answers();
  call.mapped()(std::move(reply));
}

void AgentClient::after(Duration pause, Then then) {
  timers_.emplace(deps_.machine.clock.now() + pause, std::move(then));
}

bool AgentClient::run_posted() {
  if (posted_.empty()) return false;
  const auto then = std::make_unique<Then>(std::move(posted_.front()));
  posted_.pop_front();
  (*then)();
  return true;
}

// ------------------------------------------------------------------------------ end of an agent

void AgentClient::closed(const Process& agent) {
  if (&agent != agent_) return;
  if (!calls_.empty()) deps_.coverage.happened(CardEvent::AgentDiedBusy);
  is_failing_ = true;
  give_up_.reset();
}

/// The caller's failure is decided before the next one, as on a loop that does one thing at a time.
void AgentClient::fail_next() {
  if (!calls_.empty()) {
    auto call = calls_.extract(calls_.begin());
    return call.mapped()(fail(Errc::ConnectionLost, "the connection ended before the answer came"));
  }
  is_failing_ = false;
  if (std::exchange(serves_, false)) {
    deps_.coverage.happened(CardEvent::AgentDied);
    handlers_.on_lost();
  }
  after(kRestartPause, [this] { start_another(); });
}

void AgentClient::start_another() {
  begin_process();
  const std::uint64_t number = ++last_call_;
  calls_.emplace(number, [this](const Result<control::Payload>& card) {
    if (!card) return;
    serves_ = true;
    deps_.coverage.happened(CardEvent::AgentRestarted);
    handlers_.on_restarted();
  });
  expect_answers();
  send(number, wire::AgentDevice::kMethod, wire::Empty{}.to_json());
}

void AgentClient::poll_timers() {
  const TimePoint now = deps_.machine.clock.now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    posted_.push_back(std::move(timers_.extract(timers_.begin()).mapped()));
  }
  if (!give_up_ || *give_up_ > now) return;
  give_up_.reset();
  deps_.coverage.happened(CardEvent::AgentHung);
  deps_.card->agent_died(*agent_);  // the driver learns of a SIGKILL first
  agent_->kill_pending = true;
  for (auto& [number, on_reply] : std::exchange(calls_, {})) {
    post([on_reply = std::move(on_reply)]() mutable {
      on_reply(fail(Errc::TimedOut, "the device agent answers none of its calls"));
    });
  }
}

void AgentClient::end() {
  calls_.clear();
  posted_.clear();
  timers_.clear();
  is_failing_ = false;
  deps_.card->agent_died(*agent_);  // it ends with its broker
  agent_->kill_pending = !agent_->is_dead();
}

std::optional<TimePoint> AgentClient::next_due() const {
  std::optional<TimePoint> due = give_up_;
  if (!timers_.empty())
    due = std::min(due.value_or(timers_.begin()->first), timers_.begin()->first);
  return due;
}

}  // namespace leasehold::simulation
