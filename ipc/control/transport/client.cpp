#include "ipc/control/transport/client.hpp"

#include <boost/asio/io_context.hpp>
#include <optional>

namespace leasehold::control {

struct Client::State {
  boost::asio::io_context io{1};  // declared first: the peer must be destroyed before it
  std::shared_ptr<Peer> peer;
};

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(const std::string& path, Limits limits) {
  auto state = std::make_unique<State>();
  Socket socket = TRY(connect_to(state->io, path));
  state->peer = Peer::create(std::move(socket), {}, limits);
  state->peer->start();
  return Client(std::move(state));
}

Result<Payload> Client::call(const std::string& method, Payload params, Duration timeout) {
  std::optional<Result<Payload>> reply;
  state_->io.restart();
  state_->peer->call(
      method, std::move(params), [&](Result<Payload> result) { reply = std::move(result); },
      timeout);
  // The peer always calls the handler, so the context does not run out of work before that.
  while (!reply) state_->io.run_one();
  return *std::move(reply);
}

std::vector<Result<Payload>> Client::call_all(const std::string& method,
                                              std::vector<Payload> params, Duration timeout) {
  std::vector<std::optional<Result<Payload>>> replies(params.size());
  std::size_t waiting = params.size();
  state_->io.restart();
  for (std::size_t i = 0; i < params.size(); ++i) {
    const auto on_reply = [&, i](Result<Payload> result) {
      replies[i] = std::move(result);
      --waiting;
    };
    state_->peer->call(method, std::move(params[i]), on_reply, timeout);
  }
  while (waiting > 0) state_->io.run_one();
  std::vector<Result<Payload>> results;
  for (auto& reply : replies) results.push_back(*std::move(reply));
  return results;
}

}  // namespace leasehold::control
