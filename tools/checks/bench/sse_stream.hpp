/// A client of a worker's HTTP door: one connection, on which completions are streamed one after
/// another, read at little cost (light_stream.hpp says why).
///
/// Lifetime: shared, alive while it reads; `io` outlives it. Threads: the one that runs `io`.
#pragma once

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::bench {

enum class SseKind { Token, Error, Done, Other };

/// Of the data of one event: reads only its start, since the door writes keys in a fixed order.
SseKind sse_kind_of(std::string_view data);

class SseStream : public std::enable_shared_from_this<SseStream> {
 public:
  /// `on_token` for each event with a token; `on_end` once for each request: its error, if it has
  /// one, as soon as that was read. A refused request has an error, too. After ConnectionLost
  /// nothing more is sent.
  struct Handlers {
    std::function<void()> on_token;
    std::function<void(Result<void>)> on_end;
  };

  /// Connects to the path of a Unix socket. Errors: ConnectionRefused.
  static Result<std::shared_ptr<SseStream>> connect(boost::asio::io_context& io,
                                                    const std::string& path, Handlers handlers);
  /// Sends a request. Precondition: the one before has ended.
  void send(const std::string& request);
  void close();

 private:
  using Socket = boost::asio::generic::stream_protocol::socket;
  SseStream(Socket socket, Handlers handlers)
      : socket_(std::move(socket)), handlers_(std::move(handlers)) {}
  void read_more();
  void read_chunks();
  void read_chunk(std::string_view chunk);
  void end(Result<void> how);

  Socket socket_;
  Handlers handlers_;
  std::array<char, 65536> buffer_{};
  std::string unread_;
  bool has_head_ = false;
  bool has_ended_ = true;
  bool over_ = false;
};

/// The text of a request for a completion of as many tokens, with a prompt of words.
std::string sse_request(const std::string& key, const std::string& model, std::uint32_t max_tokens);

}  // namespace leasehold::bench
