/// What the routes see of a connection: answers go out, and the client may leave.
///
/// Lifetime: the connection's. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>

#include "ipc/http/http_answer.hpp"

namespace leasehold::http {

class HttpStream {
 public:
  virtual ~HttpStream() = default;

  /// Sends a whole answer; once, and not together with events.
  virtual boost::asio::awaitable<void> send(Answer answer) = 0;

  enum class Follows { More, Nothing };
  /// Sends events of a stream in one write; the head goes before the first ones. After Nothing the
  /// stream has ended. Without events it sends a comment, which clients skip.
  virtual boost::asio::awaitable<void> write_events(ServerEvents events, Follows follows) = 0;

  /// Calls `on_change` when the client leaves or shuts down its sending side, until the last write
  /// of the answer begins. What it sends meanwhile waits: it is the next request.
  virtual void watch(std::function<void()> on_change) = 0;
  /// Call after `on_change`. A client that has shut down its sending side may still read, or may
  /// have closed, which looks the same: this sends it a few bytes, which a closed one answers with
  /// a reset. Sends nothing to others.
  virtual boost::asio::awaitable<void> probe() = 0;
  /// The client has left, or the server closes. Nothing more need be sent.
  virtual bool is_gone() const = 0;
};

}  // namespace leasehold::http
