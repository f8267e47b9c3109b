#include "worker/http/http_server.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <variant>

#include "ipc/control/peer.hpp"
#include "ipc/control/socket_file.hpp"
#include "worker/http/http_connection.hpp"

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Local = asio::local::stream_protocol;

constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr mode_t kSocketMode = 0666;     // the key protects it
constexpr std::size_t kPrefixBytes = 8;  // /64

Result<tcp::acceptor> listen_tcp(asio::io_context& io, const Address& address) {
  const tcp::endpoint endpoint(asio::ip::make_address(address.ip), address.port);
  tcp::acceptor acceptor(io);
  boost::system::error_code error;
  const auto step = [&](auto action) {
    if (!error) (void)action();
  };
  step([&] { return acceptor.open(endpoint.protocol(), error); });
  step([&] { return acceptor.set_option(tcp::acceptor::reuse_address(true), error); });
  step([&] { return acceptor.bind(endpoint, error); });
  step([&] { return acceptor.listen(asio::socket_base::max_listen_connections, error); });
  if (!error) return acceptor;
  const Errc code = error == asio::error::address_in_use  ? Errc::SocketInUse
                    : error == asio::error::access_denied ? Errc::PermissionDenied
                                                          : Errc::SystemError;
  return fail(code, fmt::format("cannot listen on {} port {}: {}; choose another --http",
                                address.ip, address.port, error.message()));
}

Source source_of(const tcp::socket& socket) {
  boost::system::error_code error;
  const auto ip = socket.remote_endpoint(error).address();
  if (!ip.is_v6()) return ip.to_string();
  auto bytes = ip.to_v6().to_bytes();
  std::fill(bytes.begin() + kPrefixBytes, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes).to_string();
}

Source source_of(const Local::socket& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  // The descriptor of the socket is not changed.
  const int fd = const_cast<Local::socket&>(socket).native_handle();
  ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return fmt::format("uid:{}", peer.uid);
}

}  // namespace

struct Server::State : std::enable_shared_from_this<State> {
  explicit State(Dependencies dependencies)
      : shared(std::make_shared<Shared>(std::move(dependencies))) {}

  template <class Acceptor>
  asio::awaitable<void> accept(Acceptor& listener);
  template <class Socket>
  void add(Socket socket);

  std::shared_ptr<Shared> shared;
  std::optional<tcp::acceptor> tcp_acceptor;
  std::optional<Local::acceptor> local_acceptor;
  std::optional<control::SocketFile> file;
  std::map<Places::ConnectionId, std::weak_ptr<Connection>> connections;
  Places::ConnectionId last_id = 0;
};

template <class Acceptor>
asio::awaitable<void> Server::State::accept(Acceptor& listener) {
  const auto self = shared_from_this();
  asio::steady_timer pause(*shared->deps.io);
  while (!shared->closing) {
    auto [error, socket] = co_await listener.async_accept(kAwait);
    if (shared->closing || error == asio::error::operation_aborted) co_return;
    if (!error) {
      add(std::move(socket));
      continue;
    }
    pause.expires_after(kAcceptPause);  // no descriptor is free
    co_await pause.async_wait(kAwait);
  }
}

template <class Socket>
void Server::State::add(Socket socket) {
  boost::system::error_code ignored;
  if constexpr (std::is_same_v<Socket, tcp::socket>)
    socket.set_option(tcp::no_delay(true), ignored);  // a token is a short packet
  const Places::ConnectionId id = ++last_id;
  const auto admitted = shared->places.connected(id, source_of(socket));
  if (admitted.displaced) {
    if (const auto old = connections[*admitted.displaced].lock()) old->close();
  }
  if (!admitted.accepted) return;
  const auto connection = Connection::create(Connection::Socket(std::move(socket)), id, shared);
  connections[id] = connection;
  asio::co_spawn(*shared->deps.io, connection->run(),
                 [self = shared_from_this(), connection, id](const std::exception_ptr& failed) {
                   self->shared->places.closed(id);
                   self->connections.erase(id);
                   if (failed) spdlog::error("HTTP connection failed id={}", id);
                 });
}

Result<std::unique_ptr<Server>> Server::create(const Address& address, Dependencies dependencies) {
  asio::io_context& io = *dependencies.io;
  auto state = std::make_shared<State>(std::move(dependencies));
  if (address.unix_path.empty()) {
    state->tcp_acceptor.emplace(TRY(listen_tcp(io, address)));
  } else {
    state->local_acceptor.emplace(TRY(control::listen_on(io, address.unix_path, kSocketMode)));
    state->file.emplace(address.unix_path);
  }
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::~Server() {
  state_->shared->cpu.stop();
  state_->shared->cpu.join();  // its work gives values to `io`
  if (state_->file) state_->file->remove();
}

std::string Server::listens_on() const {
  if (state_->local_acceptor) return state_->local_acceptor->local_endpoint().path();
  const auto endpoint = state_->tcp_acceptor->local_endpoint();
  const auto ip = endpoint.address();
  const std::string host = ip.is_v6() ? "[" + ip.to_string() + "]" : ip.to_string();
  return fmt::format("{}:{}", host, endpoint.port());
}

void Server::serve() {
  auto& io = *state_->shared->deps.io;
  if (state_->tcp_acceptor)
    asio::co_spawn(io, state_->accept(*state_->tcp_acceptor), asio::detached);
  if (state_->local_acceptor)
    asio::co_spawn(io, state_->accept(*state_->local_acceptor), asio::detached);
}

void Server::drain() {
  state_->shared->draining = true;
}

/// A request counts before it reads `draining`, so none that this misses is admitted.
bool Server::is_answering() const {
  return state_->shared->answering > 0;
}

bool Server::is_closed() const {
  return state_->connections.empty();
}

void Server::close() {
  state_->shared->closing = true;
  boost::system::error_code ignored;
  if (state_->tcp_acceptor) state_->tcp_acceptor->close(ignored);
  if (state_->local_acceptor) state_->local_acceptor->close(ignored);
  for (const auto& [id, weak] : state_->connections)
    if (const auto connection = weak.lock()) connection->close();
}

}  // namespace leasehold::http
