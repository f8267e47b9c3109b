/// Listens for HTTP connections, on TCP or on a Unix socket.
///
/// A TCP socket that the service manager passed is used for its address, so a program can serve an
/// address that its unit forbids it to open. Source: sd_listen_fds(3).
///
/// Lifetime: `io` outlives it. Threads: the one that runs `io`, except `create`.
#pragma once

#include <sys/types.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/result.hpp"
#include "ipc/http/http_address.hpp"
#include "ipc/http/http_source.hpp"

namespace leasehold::http {

class Listener {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using OnAccepted = std::function<void(Socket, const PeerAddress&)>;

  /// Listens at once; connections wait in the backlog until `serve`. `socket_mode` is the mode of a
  /// Unix socket's file. Errors: SocketInUse, PermissionDenied, SystemError; those of
  /// control::listen_on.
  static Result<std::unique_ptr<Listener>> create(boost::asio::io_context& io,
                                                  const Address& address, mode_t socket_mode);
  /// Removes the file of a Unix socket.
  ~Listener();

  /// The address, with the port that the system chose for port 0.
  std::string listens_on() const;
  /// Passes each connection to `on_accepted`, which is kept until `close`. Call once.
  void serve(OnAccepted on_accepted);
  /// Stops accepting connections.
  void close();

 private:
  struct State;
  explicit Listener(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace leasehold::http
