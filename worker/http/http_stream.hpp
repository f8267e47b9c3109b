/// The part of a connection that routes use: it sends answers and notices that the client has left.
///
/// Lifetime: the connection's. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>

#include "ipc/http/http_answer.hpp"
#include "worker/http/exchange_labels.hpp"

namespace leasehold::http {

class HttpStream {
 public:
  virtual ~HttpStream() = default;

  /// Sends a whole answer. Call once, and not together with write_events.
  virtual boost::asio::awaitable<void> send(Answer answer) = 0;

  enum class Follows { More, Nothing };
  /// Sends events of a stream in one write, with the response head before the first ones.
  /// Follows::Nothing ends the stream. Without events it sends a comment, which clients skip.
  virtual boost::asio::awaitable<void> write_events(ServerEvents events, Follows follows) = 0;

  /// Calls `on_change` when the client leaves or shuts down its sending side, until the last write
  /// of the answer begins. Input that arrives meanwhile is kept as the client's next request.
  virtual void watch(std::function<void()> on_change) = 0;
  /// Call after `on_change`. Sends a few bytes to a client that has shut down its sending side.
  /// Such a client may still read or may have closed, and only a closed one answers with a reset.
  /// Sends nothing to other clients.
  virtual boost::asio::awaitable<void> probe() = 0;
  /// Notes the error that ends a stream after its head, for the span of the exchange.
  virtual void note_error(Errc) {}
  /// The names of the exchange in logs and traces.
  virtual const ExchangeLabels& labels() const = 0;
  /// The client has left, or the server closes. Nothing more need be sent.
  virtual bool is_gone() const = 0;
};

}  // namespace leasehold::http
