/// One connection of the HTTP door. Internal to worker/http; all of Beast is in its source.
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
  static std::shared_ptr<Connection> create(Socket socket, Places::ConnectionId id,
                                            std::shared_ptr<Shared> shared);
  virtual ~Connection() = default;

  /// Serves requests until the client or `close` ends the connection.
  virtual boost::asio::awaitable<void> run() = 0;
  virtual void close() = 0;
};

}  // namespace leasehold::http
