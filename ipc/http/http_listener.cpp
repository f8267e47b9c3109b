#include "ipc/http/http_listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>

#include "common/machine/close_on_exec.hpp"
#include "common/machine/unique_fd.hpp"
#include "ipc/control/transport/peer.hpp"
#include "ipc/control/transport/socket_file.hpp"
#include "ipc/http/http_await.hpp"

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Local = asio::local::stream_protocol;

constexpr auto kAcceptPause = std::chrono::milliseconds(100);

/// A descriptor of the socket that the service manager passed for this address; empty if there is
/// none. The socket stays open until the process ends, so its clients also reach the next process.
UniqueFd passed_socket(const tcp::endpoint& endpoint) {
  constexpr int kKeepVariables = 0;
  constexpr int kListening = 1;
  const int end = SD_LISTEN_FDS_START + ::sd_listen_fds(kKeepVariables);
  for (int fd = SD_LISTEN_FDS_START; fd < end; ++fd) {
    const auto size = static_cast<unsigned>(endpoint.size());
    if (::sd_is_socket_sockaddr(fd, SOCK_STREAM, endpoint.data(), size, kListening) > 0)
      return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, SD_LISTEN_FDS_START));
  }
  return {};
}

Result<tcp::acceptor> listen_tcp(asio::io_context& io, const Address& address) {
  const tcp::endpoint endpoint(asio::ip::make_address(address.ip), address.port);
  tcp::acceptor acceptor(io);
  boost::system::error_code error;
  if (UniqueFd passed = passed_socket(endpoint)) {
    acceptor.assign(endpoint.protocol(), passed.get(), error);
    if (error)
      return fail(Errc::SystemError, "take the service manager's socket: " + error.message());
    passed.release();
    return acceptor;
  }
  const auto step = [&](auto action) {
    if (!error) (void)action();
  };
  step([&] { return acceptor.open(endpoint.protocol(), error); });
  set_close_on_exec(acceptor.native_handle());
  step([&] { return acceptor.set_option(tcp::acceptor::reuse_address(true), error); });
  step([&] { return acceptor.bind(endpoint, error); });
  step([&] { return acceptor.listen(asio::socket_base::max_listen_connections, error); });
  if (!error) return acceptor;
  const Errc code = error == asio::error::address_in_use  ? Errc::SocketInUse
                    : error == asio::error::access_denied ? Errc::PermissionDenied
                                                          : Errc::SystemError;
  // RestrictAddressFamilies= of a systemd unit causes this error.
  const char* const next = error == asio::error::address_family_not_supported
                               ? "run `systemctl daemon-reload`, so that systemd listens for this "
                                 "program, and restart its unit; `systemctl --failed` names a "
                                 "socket that cannot listen"
                               : "choose another address";
  return fail(code, fmt::format("cannot listen on {} port {}: {}; {}", address.ip, address.port,
                                error.message(), next));
}

PeerAddress peer_of(const tcp::socket& socket) {
  boost::system::error_code error;
  return peer_address(socket.remote_endpoint(error).address());
}

PeerAddress peer_of(const Local::socket& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  // native_handle() is not const, but the socket is not changed.
  const int fd = const_cast<Local::socket&>(socket).native_handle();
  ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return fmt::format("uid:{}", peer.uid);
}

}  // namespace

struct Listener::State : std::enable_shared_from_this<State> {
  explicit State(asio::io_context& context) : io(&context) {}

  template <class Acceptor>
  asio::awaitable<void> accept(Acceptor& listener, OnAccepted on_accepted);

  asio::io_context* io;
  std::optional<tcp::acceptor> tcp_acceptor;
  std::optional<Local::acceptor> local_acceptor;
  std::optional<control::SocketFile> file;
  bool closing = false;
};

template <class Acceptor>
asio::awaitable<void> Listener::State::accept(Acceptor& listener, OnAccepted on_accepted) {
  const auto self = shared_from_this();
  asio::steady_timer pause(*io);
  while (!closing) {
    auto [error, socket] = co_await listener.async_accept(kAwait);
    if (closing || error == asio::error::operation_aborted) co_return;
    if (!error) {
      set_close_on_exec(socket.native_handle());
      boost::system::error_code ignored;
      if constexpr (std::is_same_v<Acceptor, tcp::acceptor>)
        socket.set_option(tcp::no_delay(true), ignored);  // a token is a short packet
      const PeerAddress peer = peer_of(socket);
      on_accepted(Socket(std::move(socket)), peer);
      continue;
    }
    pause.expires_after(kAcceptPause);  // no descriptor is free
    co_await pause.async_wait(kAwait);
  }
}

Result<std::unique_ptr<Listener>> Listener::create(asio::io_context& io, const Address& address,
                                                   mode_t socket_mode) {
  auto state = std::make_shared<State>(io);
  if (address.unix_path.empty()) {
    state->tcp_acceptor.emplace(TRY(listen_tcp(io, address)));
  } else {
    state->local_acceptor.emplace(TRY(control::listen_on(io, address.unix_path, socket_mode)));
    state->file.emplace(address.unix_path);
  }
  return std::unique_ptr<Listener>(new Listener(std::move(state)));
}

Listener::~Listener() {
  if (state_->file) state_->file->remove();
}

std::string Listener::listens_on() const {
  if (state_->local_acceptor) return state_->local_acceptor->local_endpoint().path();
  const auto endpoint = state_->tcp_acceptor->local_endpoint();
  const auto ip = endpoint.address();
  const std::string host = ip.is_v6() ? "[" + ip.to_string() + "]" : ip.to_string();
  return fmt::format("{}:{}", host, endpoint.port());
}

void Listener::serve(OnAccepted on_accepted) {
  auto& state = *state_;
  if (state.tcp_acceptor)
    asio::co_spawn(*state.io, state.accept(*state.tcp_acceptor, std::move(on_accepted)),
                   asio::detached);
  else
    asio::co_spawn(*state.io, state.accept(*state.local_acceptor, std::move(on_accepted)),
                   asio::detached);
}

void Listener::close() {
  state_->closing = true;
  boost::system::error_code ignored;
  if (state_->tcp_acceptor) state_->tcp_acceptor->close(ignored);
  if (state_->local_acceptor) state_->local_acceptor->close(ignored);
}

}  // namespace leasehold::http
