/// A client of an HTTP server with OpenAI's API. Streams completions one after another on one
/// connection, and reads them at little cost (light_stream.hpp says why).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/checks/bench/read_stream.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold::bench {

enum class SseKind { Token, Error, Done, Other };

/// Returns the kind of an event from its data. For events of our server reads only the start, since
/// the server writes keys in a fixed order.
SseKind sse_kind_of(std::string_view data);

class SseStream : public ReadStream {
 public:
  /// `on_token` is called for each event with a token; `on_end` once for each request, with its
  /// error as soon as that was read. A refused request has an error, too. After ConnectionLost no
  /// handler is called.
  struct Handlers {
    std::function<void()> on_token;
    std::function<void(Result<void>)> on_end;
    /// Called with the data of each other event, such as the usage. May be empty.
    std::function<void(std::string_view)> on_other = {};
  };

  /// Connects to the path of a Unix socket. Errors: those of connect_to.
  static Result<std::shared_ptr<SseStream>> connect(boost::asio::io_context& io,
                                                    const std::string& path, Handlers handlers);
  /// The same on a connected socket.
  static std::shared_ptr<SseStream> over(StreamSocket socket, Handlers handlers);
  /// Sends a request. Precondition: the previous request has ended.
  void send(const std::string& request);

 private:
  SseStream(StreamSocket socket, Handlers handlers)
      : ReadStream(std::move(socket)), handlers_(std::move(handlers)) {}
  void use(std::string& unread) override;  // whole chunks
  void lost(Error why) override;
  void read_chunk(std::string_view chunk);
  void end(Result<void> how);

  Handlers handlers_;
  bool has_head_ = false;
  bool has_ended_ = true;
};

struct CompletionRequest {
  std::string key;
  std::string model;
  std::vector<TokenId> prompt;
  std::uint32_t max_tokens = 1;
  bool include_usage = false;  ///< Request the usage in an event at the end.
};

/// The text of a request that streams the completion. The completion is greedy, and an end token
/// does not end it.
std::string sse_request(const CompletionRequest& request);
/// The same with a prompt of words.
std::string sse_request(const std::string& key, const std::string& model, std::uint32_t max_tokens);

}  // namespace leasehold::bench
