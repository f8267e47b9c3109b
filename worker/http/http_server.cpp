#include "worker/http/http_server.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <map>

#include "ipc/http/http_listener.hpp"
#include "worker/http/http_connection.hpp"

namespace leasehold::http {

namespace asio = boost::asio;

namespace {

constexpr mode_t kSocketMode = 0666;  // each request needs a key

}  // namespace

struct Server::State : std::enable_shared_from_this<State> {
  explicit State(Dependencies dependencies)
      : shared(std::make_shared<Shared>(std::move(dependencies))) {
    shared->close_connection = [this](Places::ConnectionId id) { close(id); };
  }

  void add(Listener::Socket socket, const PeerAddress& peer);
  void close(Places::ConnectionId id);

  std::shared_ptr<Shared> shared;
  std::unique_ptr<Listener> listener;
  std::map<Places::ConnectionId, std::weak_ptr<Connection>> connections;
  Places::ConnectionId last_id = 0;
};

void Server::State::close(Places::ConnectionId id) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  if (const auto connection = found->second.lock()) connection->close();
}

void Server::State::add(Listener::Socket socket, const PeerAddress& peer) {
  const Places::ConnectionId id = ++last_id;
  const auto admitted = shared->places.connected(id, source_of(peer));
  if (admitted.displaced) close(*admitted.displaced);
  if (!admitted.accepted) return;
  const auto connection = Connection::create(std::move(socket), peer, id, shared);
  connections[id] = connection;
  asio::co_spawn(*shared->deps.io, connection->run(),
                 [self = shared_from_this(), connection, id](const std::exception_ptr& failed) {
                   self->shared->places.closed(id);
                   self->connections.erase(id);
                   if (failed) spdlog::error("HTTP connection failed id={}", id);
                 });
}

Result<std::unique_ptr<Server>> Server::create(const Address& address, Dependencies dependencies) {
  auto listener = TRY(Listener::create(*dependencies.io, address, kSocketMode));
  auto state = std::make_shared<State>(std::move(dependencies));
  state->listener = std::move(listener);
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::~Server() {
  state_->shared->cpu.stop();
  state_->shared->cpu.join();  // its work gives values to `io`
  state_->listener.reset();    // handlers that never ran may keep the state
}

std::string Server::listens_on() const {
  return state_->listener->listens_on();
}

void Server::serve() {
  state_->listener->serve([state = state_](Listener::Socket socket, const PeerAddress& peer) {
    state->add(std::move(socket), peer);
  });
}

void Server::drain() {
  state_->shared->draining = true;
}

/// A request counts before it reads `draining`, so none that this misses is admitted.
bool Server::is_answering() const {
  return state_->shared->answering > 0;
}

bool Server::is_writing() const {
  return state_->shared->answering > state_->shared->awaiting_lease;
}

bool Server::is_closed() const {
  return state_->connections.empty();
}

void Server::close() {
  state_->shared->closing = true;
  state_->listener->close();
  for (const auto& [id, weak] : state_->connections)
    if (const auto connection = weak.lock()) connection->close();
}

}  // namespace leasehold::http
