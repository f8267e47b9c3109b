/// One request on one connection, read at little cost.
///
/// A small model generates tens of thousands of tokens per second. A client that parses each of
/// them falls behind and measures its own backlog. This one recognises a token by its method name
/// and parses only the reply and the end.
///
/// Lifetime: shared, alive while it reads; `io` outlives it. Threads: the one that runs `io`.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold::bench {

enum class LineKind { Token, Completed, Other };

/// Reads only the start of the line: the worker writes keys in a fixed order.
LineKind kind_of(std::string_view line);

class LightStream : public std::enable_shared_from_this<LightStream> {
 public:
  /// `on_end` is called once, last: how the request ended, or why it failed.
  struct Handlers {
    std::function<void()> on_token;
    std::function<void(Result<wire::RequestCompleted>)> on_end;
  };

  /// Connects, authenticates with the token of the request, and submits it. Errors: those of
  /// connect_to; ConnectionLost.
  static Result<std::shared_ptr<LightStream>> open(boost::asio::io_context& io,
                                                   const std::string& address,
                                                   const wire::RequestSubmit& generate,
                                                   Handlers handlers);
  void close();

 private:
  LightStream(control::Socket socket, Handlers handlers)
      : socket_(std::move(socket)), handlers_(std::move(handlers)) {}
  void read_more();
  void read_lines();
  void read_line(std::string_view line);
  void end(Result<wire::RequestCompleted> how);

  control::Socket socket_;
  Handlers handlers_;
  std::array<char, 65536> chunk_{};
  std::string unread_;  ///< An incomplete line.
  bool over_ = false;
};

}  // namespace leasehold::bench
