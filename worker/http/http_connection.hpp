/// One connection of the HTTP server. Internal to worker/http; all of Beast is in its source.
///
/// The next request may come before the answer: it waits, 16 KiB of it in the connection's buffer.
/// A client that shuts down its sending side still gets its answer. On TCP this looks like a client
/// that has closed, so the connection sends one `100 Continue`, or one comment within a stream. A
/// closed client answers with a reset, and counts as gone. Before the first byte of an answer to
/// HTTP/1.0 nothing can be sent: such a client counts as gone, too.
///
/// Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <memory>

#include "worker/http/http_shared.hpp"

namespace leasehold::http {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  static std::shared_ptr<Connection> create(Socket socket, PeerAddress peer,
                                            Places::ConnectionId id,
                                            std::shared_ptr<Shared> shared);
  virtual ~Connection() = default;

  /// Serves requests until the client or `close` ends the connection.
  virtual boost::asio::awaitable<void> run() = 0;
  virtual void close() = 0;
};

}  // namespace leasehold::http
