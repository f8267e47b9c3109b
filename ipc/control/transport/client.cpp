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

}  // namespace leasehold::control
