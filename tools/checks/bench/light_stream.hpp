/// One `generate` on one connection, read as cheaply as can be.
///
/// A small model makes tens of thousands of tokens a second. A client that parses each of them
/// falls behind, and then its own backlog is what is measured. Here a token is recognised by its
/// method and counted; only the reply and the end are parsed.
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

/// What a line from a worker is. Only its beginning is looked at: the worker writes keys in order.
LineKind kind_of(std::string_view line);

class LightStream : public std::enable_shared_from_this<LightStream> {
 public:
  /// `on_end` is the last, called once: how the request ended, or why it could not go on.
  struct Handlers {
    std::function<void()> on_token;
    std::function<void(Result<wire::RequestCompleted>)> on_end;
  };

  /// Connects and submits. Errors: those of connect_to; ConnectionLost.
  static Result<std::shared_ptr<LightStream>> open(boost::asio::io_context& io,
                                                   const std::string& address,
                                                   const wire::Generate& generate,
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
  std::string unread_;  ///< Less than a line.
  bool over_ = false;
};

}  // namespace leasehold::bench
