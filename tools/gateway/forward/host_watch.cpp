#include "tools/gateway/forward/host_watch.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "tools/gateway/decide/place.hpp"

namespace leasehold::gateway {
namespace {

namespace asio = boost::asio;

constexpr auto kLookInterval = std::chrono::milliseconds(100);

}  // namespace

/// Shared with the coroutine that watches, which ends by itself.
struct HostWatch::State {
  State(Shared& from, Request of) : shared(from), request(std::move(of)), ended(from.io) {
    request.without.push_back(request.host);
  }

  bool must_close() const { return is_over || silence.has_value() || shared.is_cut; }
  void close() {
    if (connection) connection->close();
  }
  /// Another host can take the request.
  bool has_other_host() const {
    const PlaceQuery query{.model = request.model, .without = request.without};
    return place(shared.hosts.table(), query, shared.clock.now()).has_value();
  }
  bool must_leave() const {
    return shared.hosts.state(request.host) == HostState::Silent && has_other_host();
  }

  Shared& shared;
  Request request;
  Signal ended;
  std::shared_ptr<HostConnection> connection;
  std::optional<Error> silence;
  bool is_over = false;
};

HostWatch::HostWatch(Shared& shared, ClientExchange& client, Request request)
    : client_(client), state_(std::make_shared<State>(shared, std::move(request))) {
  client_.stream().on_end([state = state_] { state->close(); });
  if (state_->request.may_move) asio::co_spawn(shared.io, watch(state_), asio::detached);
}

HostWatch::~HostWatch() {
  client_.stream().on_end(nullptr);
  state_->is_over = true;
  state_->ended.notify();
}

HostId HostWatch::host() const {
  return state_->request.host;
}

HostLink::OnConnected HostWatch::on_connected() const {
  return [state = state_, &client = client_](std::shared_ptr<HostConnection> connection) {
    state->connection = std::move(connection);
    if (state->must_close() || client.stream().is_ended()) state->close();
  };
}

void HostWatch::release() {
  state_->connection = nullptr;
}

const std::optional<Error>& HostWatch::silence() const {
  return state_->silence;
}

asio::awaitable<void> HostWatch::watch(std::shared_ptr<State> state) {
  while (!state->must_close()) {
    co_await state->ended.wait_until(Signal::Clock::now() + kLookInterval);
    if (state->is_over || !state->must_leave()) continue;
    const HostTable& table = state->shared.hosts.table();
    state->silence =
        Error{Errc::TimedOut, fmt::format("host {} is silent", table.address(state->request.host))};
    state->close();
  }
}

}  // namespace leasehold::gateway
