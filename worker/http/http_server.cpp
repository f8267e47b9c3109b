#include "worker/http/http_server.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <map>

#include "ipc/http/http_listener.hpp"
#include "worker/http/batch/batch_runner.hpp"
#include "worker/http/http_connection.hpp"

namespace leasehold::http {

namespace asio = boost::asio;

namespace {

constexpr mode_t kSocketMode = 0666;  // open to all users: each request needs a key

}  // namespace

struct Server::State : std::enable_shared_from_this<State> {
  explicit State(Dependencies dependencies)
      : shared(std::make_shared<Shared>(std::move(dependencies))) {
    shared->close_connection = [this](Places::ConnectionId id) { close(id); };
    if (shared->deps.batch_store != nullptr)
      shared->batches = std::make_shared<BatchRunner>(*shared, *shared->deps.batch_store);
  }

  void add(Listener::Socket socket, const PeerAddress& peer);
  asio::awaitable<void> serve(std::shared_ptr<Connection> connection, Places::ConnectionId id);
  void close(Places::ConnectionId id);

  std::shared_ptr<Shared> shared;
  std::unique_ptr<Listener> listener;
  std::map<Places::ConnectionId, std::weak_ptr<Connection>> connections;
  Places::ConnectionId last_id = 0;
};

/// Removes a connection from the server when this object is destroyed.
class Server::KeptConnection {
 public:
  KeptConnection(std::shared_ptr<State> state, Places::ConnectionId id)
      : state_(std::move(state)), id_(id) {}
  ~KeptConnection() {
    state_->shared->places.closed(id_);
    state_->connections.erase(id_);
  }
  KeptConnection(const KeptConnection&) = delete;
  KeptConnection& operator=(const KeptConnection&) = delete;

 private:
  std::shared_ptr<State> state_;
  Places::ConnectionId id_;
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
  asio::co_spawn(*shared->deps.io, serve(connection, id), [id](const std::exception_ptr& failed) {
    if (failed) spdlog::error("HTTP connection failed id={}", id);
  });
}

/// `kept` removes the connection however this coroutine ends: normally, with an exception, or
/// destroyed while it is suspended.
asio::awaitable<void> Server::State::serve(std::shared_ptr<Connection> connection,
                                           Places::ConnectionId id) {
  const KeptConnection kept(shared_from_this(), id);
  co_await connection->run();
}

Result<std::unique_ptr<Server>> Server::create(const Address& address, Dependencies dependencies) {
  auto listener = TRY(Listener::create(*dependencies.io, address, kSocketMode));
  auto state = std::make_shared<State>(std::move(dependencies));
  state->listener = std::move(listener);
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::~Server() {
  state_->shared->pool.stop();  // its work posts values to `io`
  state_->listener.reset();     // handlers that never ran may hold the state
}

std::string Server::listens_on() const {
  return state_->listener->listens_on();
}

void Server::serve() {
  state_->listener->serve([state = state_](Listener::Socket socket, const PeerAddress& peer) {
    state->add(std::move(socket), peer);
  });
  if (state_->shared->batches) state_->shared->batches->start(state_->shared);
}

void Server::drain() {
  state_->shared->draining = true;
  if (!state_->shared->batches) return;
  boost::asio::post(*state_->shared->deps.io, [batches = std::weak_ptr(state_->shared->batches)] {
    if (const auto runner = batches.lock()) runner->stop();
  });
}

void Server::forget_adapters() {
  boost::asio::post(*state_->shared->deps.io, [weak = std::weak_ptr(state_->shared)] {
    if (const auto shared = weak.lock()) shared->models.forget();
  });
}

/// A request is counted before it reads `draining`, so after `drain` a request that this misses is
/// not admitted.
bool Server::is_answering() const {
  return state_->shared->counts.answering > 0;
}

bool Server::is_writing() const {
  return state_->shared->counts.answering > state_->shared->counts.awaiting_lease;
}

RunningAnswers& Server::running_answers() {
  return state_->shared->running_answers;
}

void Server::end_answers() {
  drain();
  if (state_->shared->batches) state_->shared->batches->stop();
  for (const RunningAnswer& answer : state_->shared->running_answers.all())
    answer.end(state_->shared->deps.stopping, true);
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
