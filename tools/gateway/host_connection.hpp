/// A connection to a host: sends requests and reads answers piece by piece.
///
/// A host is not trusted: its answers are bounded and checked. A host of a cell names its
/// incarnation in each answer; an answer of another one is a lost connection, because a process
/// that should have stopped sends it, or one that has joined since. Errors of all functions name
/// the host. Lifetime: shared, because `close` may be called while a coroutine reads. Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/result.hpp"
#include "ipc/http/answer_reader.hpp"
#include "ipc/http/early_end.hpp"
#include "ipc/http/http_message.hpp"
#include "tools/gateway/decide/host_table.hpp"

namespace leasehold::gateway {

/// The head of an answer. Of `head` only the fields are set.
struct HostHead {
  int status = 0;
  http::Head head;
};

class HostConnection {
 public:
  /// Limit for an answer with a length. Others are taken in pieces, which the caller limits.
  static constexpr std::size_t kMaxAnswerBytes = 64 << 20;

  /// `host` names the host in errors. `incarnation`: of a host of a cell.
  HostConnection(std::unique_ptr<http::ByteStream> stream, std::string host,
                 std::optional<Incarnation> incarnation)
      : stream_(std::move(stream)), host_(std::move(host)), incarnation_(incarnation) {}

  /// Sends a request, or the next bytes of one. Errors: ConnectionLost, TimedOut.
  boost::asio::awaitable<Result<void>> send(std::string request, std::chrono::milliseconds timeout);
  /// Reads the head of the next answer. `has_body`: false for a request with HEAD. `timeout`:
  /// nothing waits for ever; the request may still be sent meanwhile. Errors: ConnectionLost, also
  /// for another incarnation; TimedOut; MalformedMessage for what is not HTTP/1; MessageTooLarge.
  boost::asio::awaitable<Result<HostHead>> read_head(
      bool has_body, std::optional<std::chrono::milliseconds> timeout);
  /// Reads the next bytes of the body; empty at its end. `timeout`: nothing waits for ever. Errors:
  /// as read_head.
  boost::asio::awaitable<Result<std::string>> read_body(
      std::optional<std::chrono::milliseconds> timeout);
  /// Reads the rest of the body. Errors: as read_head; MessageTooLarge above `max_bytes`.
  boost::asio::awaitable<Result<std::string>> read_whole_body(std::chrono::milliseconds timeout,
                                                              std::size_t max_bytes);

  /// The answer was read to its end, and the host keeps the connection open.
  bool is_reusable() const;
  /// Bytes of an answer have come; without them the host may not have seen the request.
  bool has_answered() const { return has_answered_; }
  void close() { stream_->close(); }

 private:
  boost::asio::awaitable<Result<void>> parse_more();
  Result<void> check_incarnation(const http::Head& head) const;
  std::unexpected<Error> failed(const boost::beast::error_code& error,
                                const http::Arrived& arrived = {}) const;

  std::unique_ptr<http::ByteStream> stream_;
  std::string host_;
  std::optional<Incarnation> incarnation_;
  http::AnswerReader reader_;
  bool has_answered_ = false;
  std::uint64_t taken_bytes_ = 0;  // of the body of this answer
};

}  // namespace leasehold::gateway
