/// One connection of the HTTP server. Internal to worker/http; only its source file here uses
/// Beast.
///
/// A client may send its next request before it has the answer: up to 16 KiB of it wait in the
/// connection's buffer. A client that shuts down its sending side still gets its answer. On TCP it
/// looks like a client that has closed, so the connection probes it with one `100 Continue`, or
/// with one comment within a stream. A closed client answers with a reset and counts as gone. An
/// HTTP/1.0 client cannot be probed before the first byte of its answer, so it counts as gone, too.
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
