/// A client of an HTTP server with OpenAI's API. It streams completions one after another on one
/// connection, and reads them at little cost (light_stream.hpp has the reason).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tests/checks/bench/read_stream.hpp"

namespace leasehold::bench {

enum class SseKind { Token, Error, Done, Other };

/// The kind of one event, from its data. Reads only the start of our server's events, since the
/// server writes keys in a fixed order.
SseKind sse_kind_of(std::string_view data);

class SseStream : public ReadStream {
 public:
  /// `on_token` is called for each event with a token. `on_end` is called once for each request,
  /// with its error, if there is one, as soon as the error was read. A refused request has an
  /// error, too. After ConnectionLost nothing more is sent.
  struct Handlers {
    std::function<void()> on_token;
    std::function<void(Result<void>)> on_end;
  };

  /// Connects to the path of a Unix socket. Errors: those of connect_to.
  static Result<std::shared_ptr<SseStream>> connect(boost::asio::io_context& io,
                                                    const std::string& path, Handlers handlers);
  /// Sends a request. Precondition: the previous request has ended.
  void send(const std::string& request);

 private:
  SseStream(control::Socket socket, Handlers handlers)
      : ReadStream(std::move(socket)), handlers_(std::move(handlers)) {}
  void use(std::string& unread) override;  // whole chunks
  void lost(Error why) override;
  void read_chunk(std::string_view chunk);
  void end(Result<void> how);

  Handlers handlers_;
  bool has_head_ = false;
  bool has_ended_ = true;
};

/// The HTTP request for a streamed completion of a prompt of words. It is greedy; an end token does
/// not end it. `more`: further lines of the head, each with its "\r\n".
std::string sse_request(const std::string& key, const std::string& model, std::uint32_t max_tokens,
                        const std::string& more = {});

}  // namespace leasehold::bench
