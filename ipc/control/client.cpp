#include "ipc/control/client.hpp"

#include <boost/asio/io_context.hpp>
#include <deque>
#include <optional>

namespace leasehold::control {

struct Client::State {
  boost::asio::io_context io{1};  // declared first: the peer must be destroyed before it
  std::shared_ptr<Peer> peer;
  std::deque<Notification> notifications;
  std::optional<Error> closed;

  Peer::Handlers handlers();
};

Peer::Handlers Client::State::handlers() {
  return {.on_call = {},
          .on_notification =
              [this](const std::string& method, Payload params) {
                notifications.push_back({method, std::move(params)});
              },
          .on_closed = [this](const Error& why) { closed = why; }};
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(const std::string& path, Limits limits) {
  auto state = std::make_unique<State>();
  Socket socket = TRY(connect_to(state->io, path));
  state->peer = Peer::create(std::move(socket), state->handlers(), limits);
  state->peer->start();
  return Client(std::move(state));
}

Result<Payload> Client::call(const std::string& method, Payload params, Duration timeout) {
  std::optional<Result<Payload>> reply;
  state_->io.restart();
  state_->peer->call(
      method, std::move(params), [&](Result<Payload> result) { reply = std::move(result); },
      timeout);
  // The peer always calls the handler, so the context cannot run out of work before.
  while (!reply) state_->io.run_one();
  return *std::move(reply);
}

Result<Client::Notification> Client::next_notification(Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  state_->io.restart();
  while (state_->notifications.empty() && !state_->closed)
    if (state_->io.run_one_until(deadline) == 0) break;
  if (state_->notifications.empty()) {
    if (state_->closed) return fail(Errc::ConnectionLost, state_->closed->detail);
    return fail(Errc::TimedOut, "no notification within the timeout");
  }
  Notification first = std::move(state_->notifications.front());
  state_->notifications.pop_front();
  return first;
}

}  // namespace leasehold::control
