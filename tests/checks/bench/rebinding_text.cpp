#include "tests/checks/bench/rebinding_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/random.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

constexpr auto kTextTimeout = std::chrono::minutes(5);
constexpr auto kCancelTimeout = std::chrono::seconds(3);

client::SessionConfig session_config(const RebindingTextConfig& config) {
  client::SessionConfig session{.broker_path = config.broker_socket,
                                .tenant = {config.tenant},
                                .rebind = true,
                                .retry = config.retry};
  session.request.request_id = {mint_request_id()};
  session.request.max_emitted_tokens = config.max_tokens;
  session.request.ignore_eos = true;
  auto& prompt = session.request.prompt_tokens.emplace();
  for (std::uint32_t i = 0; i < config.prompt_tokens; ++i)
    prompt.push_back(TenantPool::kFirstPromptToken +
                     static_cast<std::int32_t>(i) % TenantPool::kPromptWords);
  return session;
}

}  // namespace

struct RebindingText::State {
  struct Grant {
    LeaseId lease;
    TimePoint at;
  };
  struct TextToken {
    std::size_t grants = 0;  ///< Number of grants when the token arrived.
    TimePoint at;
  };

  void observe(const client::SessionEvent& event);
  template <class Condition>
  Result<void> await(const std::string& what, const Condition& holds);

  SystemClock clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Grant> grants;
  std::vector<TextToken> tokens;
  std::vector<client::Rebound> rebounds;
  std::optional<client::Ended> ended;
  std::string last_error = "it met no error";

  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  client::AsioTimers timers{io};
  std::shared_ptr<client::TenantSession> session;
  std::jthread thread;
};

void RebindingText::State::observe(const client::SessionEvent& event) {
  {
    const std::scoped_lock lock(mutex);
    if (const auto* acquired = std::get_if<client::Acquired>(&event))
      grants.push_back({acquired->lease, clock.now()});
    if (std::holds_alternative<client::TokenArrived>(event))
      tokens.push_back({grants.size(), clock.now()});
    if (const auto* rebound = std::get_if<client::Rebound>(&event)) rebounds.push_back(*rebound);
    if (const auto* retrying = std::get_if<client::Retrying>(&event))
      last_error = retrying->error.detail;
    if (const auto* end = std::get_if<client::Ended>(&event)) ended = *end;
  }
  changed.notify_all();
}

template <class Condition>
Result<void> RebindingText::State::await(const std::string& what, const Condition& holds) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, kTextTimeout, [&] { return holds() || ended; });
  if (holds()) return {};
  if (!ended) return fail(Errc::TimedOut, fmt::format("{} is missing; {}", what, last_error));
  if (ended->error) return std::unexpected(*ended->error);
  return fail(Errc::SystemError, fmt::format("the text ended with {} after {} tokens before {}",
                                             ended->reason, tokens.size(), what));
}

RebindingText::RebindingText(const RebindingTextConfig& config)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.session = client::TenantSession::create(
      state.io, state.timers, session_config(config),
      [&state](const client::SessionEvent& event) { state.observe(event); });
  boost::asio::post(state.io, [&state] { state.session->start(); });
  state.thread = std::jthread([&state] { state.io.run(); });
}

RebindingText::~RebindingText() {
  State& state = *state_;
  boost::asio::post(state.io, [&state] { state.session->cancel(); });
  {
    std::unique_lock lock(state.mutex);
    state.changed.wait_for(lock, kCancelTimeout, [&] { return state.ended.has_value(); });
  }
  state.io.stop();
  state.thread.join();
}

std::vector<LeaseId> RebindingText::leases() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<LeaseId> leases;
  for (const State::Grant& grant : state_->grants) leases.push_back(grant.lease);
  return leases;
}

std::size_t RebindingText::tokens() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->tokens.size();
}

bool RebindingText::has_ended() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->ended.has_value();
}

std::vector<double> RebindingText::gaps_ms() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<double> gaps;
  for (std::size_t i = 1; i < state_->tokens.size(); ++i)
    gaps.push_back(ms_of(state_->tokens[i].at - state_->tokens[i - 1].at));
  return gaps;
}

std::vector<client::Rebound> RebindingText::rebounds(wire::RebindMode mode) const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<client::Rebound> found;
  std::ranges::copy_if(state_->rebounds, std::back_inserter(found),
                       [mode](const client::Rebound& each) { return each.mode == mode; });
  return found;
}

Result<void> RebindingText::await_tokens(std::size_t count) const {
  return state_->await(fmt::format("token {}", count),
                       [&] { return state_->tokens.size() >= count; });
}

Result<RebindingText::Recovered> RebindingText::await_grant(std::size_t grant) const {
  const auto first_token = [&] {
    return std::ranges::find_if(
        state_->tokens, [&](const State::TextToken& token) { return token.grants > grant; });
  };
  TRY(state_->await(fmt::format("a token under lease number {}", grant),
                    [&] { return first_token() != state_->tokens.end(); }));
  const std::scoped_lock lock(state_->mutex);
  return Recovered{.granted = state_->grants.at(grant).at, .token = first_token()->at};
}

Result<TimePoint> RebindingText::await_token_after(TimePoint since) const {
  const auto first_token = [&] {
    return std::ranges::find_if(
        state_->tokens, [since](const State::TextToken& token) { return token.at > since; });
  };
  TRY(state_->await("the next token", [&] { return first_token() != state_->tokens.end(); }));
  const std::scoped_lock lock(state_->mutex);
  return first_token()->at;
}

Result<void> RebindingText::await_rebounds(wire::RebindMode mode, std::size_t count) const {
  return state_->await(fmt::format("rebind {} of mode {}", count, wire::name(mode)), [&] {
    return static_cast<std::size_t>(
               std::ranges::count(state_->rebounds, mode, &client::Rebound::mode)) >= count;
  });
}

}  // namespace leasehold::bench
