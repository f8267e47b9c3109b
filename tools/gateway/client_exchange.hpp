/// One request of a client, and the form of its answer.
///
/// Lifetime: within one coroutine of the connection. Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "ipc/http/http_message.hpp"
#include "ipc/http/http_source.hpp"
#include "tools/gateway/api_error.hpp"
#include "tools/gateway/pumped_stream.hpp"

namespace leasehold::gateway {

using Fields = std::vector<std::pair<std::string, std::string>>;

class ClientExchange {
 public:
  /// `peer` sent the request for `client`, which is the same unless the peer is a trusted proxy.
  struct Parties {
    http::PeerAddress peer;
    http::PeerAddress client;
  };

  ClientExchange(PumpedStream& stream, http::Head head, Parties parties, bool keep_alive);

  const http::Head& head() const { return head_; }
  const Parties& parties() const { return parties_; }
  Api api() const { return api_; }
  /// The client's X-Request-Id if it is valid, otherwise a new one.
  const std::string& x_request_id() const { return x_request_id_; }
  PumpedStream& stream() { return stream_; }
  bool keeps_alive() const { return keep_alive_ && !stream_.is_ended(); }
  void end_connection() { keep_alive_ = false; }
  bool has_begun() const { return has_begun_; }
  int status() const { return status_; }

  /// Sends a whole answer. Returns false if the client is gone, as do the functions below.
  boost::asio::awaitable<bool> send(http::Answer answer);
  /// The same with these fields beside its own.
  boost::asio::awaitable<bool> send_whole(int status, const Fields& fields, std::string body);
  boost::asio::awaitable<bool> fail(Error error);
  /// Sends the head of an answer whose body follows in pieces, with these fields beside its own.
  boost::asio::awaitable<bool> begin(int status, const Fields& fields);
  /// Sends a piece. Precondition: it is not empty.
  boost::asio::awaitable<bool> write(std::string piece);
  boost::asio::awaitable<bool> end();

 private:
  boost::asio::awaitable<bool> write_text(std::string text);
  /// The first lines of a head, up to the fields of its framing.
  std::string head_text(int status, const Fields& fields) const;

  PumpedStream& stream_;
  http::Head head_;
  Parties parties_;
  Api api_;
  std::string x_request_id_;
  int status_ = 0;
  bool keep_alive_;
  bool has_begun_ = false;
  bool is_chunked_ = false;
  bool leaves_body_out_;
};

/// True for the head of a stream of events.
bool is_event_stream(const http::Head& answer);

/// The fields of a host's answer that the client gets: all but those about the connection, the
/// host's incarnation, which may be another one after a move, and X-Request-Id, which the gateway
/// sends itself.
Fields passed_on(const http::Head& answer);

}  // namespace leasehold::gateway
