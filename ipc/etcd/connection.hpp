/// One connection to a member of etcd: one request at a time, and its reply.
///
/// The reply is not trusted: its head, body and lines are bounded. Errors of all functions name the
/// member. Lifetime: shared, because `close` may be called while a coroutine reads. Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/etcd/member_address.hpp"
#include "ipc/http/answer_reader.hpp"
#include "ipc/http/http_message.hpp"
#include "ipc/http/name_lookup.hpp"
#include "ipc/http/tls/tls.hpp"

namespace leasehold::etcd {

struct GatewayRequest {
  std::string_view target;  ///< "/v3/kv/range"
  std::string body;
  std::string token;             ///< The user's token; empty: none.
  bool requires_leader = false;  ///< A stream ends when its member has no leader.
};

class Connection {
 public:
  using Ptr = std::shared_ptr<Connection>;

  /// Connects to the first of the endpoints that accepts; to the Unix socket if `address` has one.
  /// An encrypted member is shown to `tls`. Errors: ConnectionRefused, TimedOut; those of
  /// http::TlsClient.
  static boost::asio::awaitable<Result<Ptr>> open(const MemberAddress& address,
                                                  const http::Endpoints& endpoints,
                                                  http::TlsClient* tls,
                                                  std::chrono::milliseconds timeout);

  /// `socket`: the descriptor under the stream.
  Connection(std::unique_ptr<http::ByteStream> stream, int socket, const MemberAddress& member)
      : stream_(std::move(stream)),
        socket_(socket),
        member_(member.text),
        authority_(member.authority()) {}

  /// Operations that begin later fail with TimedOut after this time from now.
  void expires_after(std::chrono::milliseconds timeout) { stream_->expires_after(timeout); }
  void expires_never() { stream_->expires_never(); }

  /// Errors: ConnectionLost, TimedOut.
  boost::asio::awaitable<Result<void>> send(GatewayRequest request);
  /// Reads the head of the reply; returns its HTTP status. Errors: ConnectionLost, TimedOut,
  /// MalformedMessage for what is not HTTP/1, MessageTooLarge.
  boost::asio::awaitable<Result<int>> read_head();
  /// Reads the whole body. Errors: as read_head; MessageTooLarge above `max_bytes`.
  boost::asio::awaitable<Result<std::string>> read_body(std::size_t max_bytes);
  /// Reads the next line of the body, without its end. Errors: as read_body; ConnectionLost at the
  /// end of the body.
  boost::asio::awaitable<Result<std::string>> read_line(std::size_t max_bytes);

  /// The reply was read to its end, and the member has not closed the connection.
  bool is_reusable();
  void close();

 private:
  boost::asio::awaitable<Result<void>> parse_more();
  boost::asio::awaitable<Result<std::string>> read_piece();
  std::unexpected<Error> failed(const boost::beast::error_code& error) const;

  std::unique_ptr<http::ByteStream> stream_;
  int socket_ = -1;  // -1 after `close`
  std::string member_;
  std::string authority_;
  http::AnswerReader reader_;
  std::string rest_;  // bytes of a stream after its last line
};

}  // namespace leasehold::etcd
