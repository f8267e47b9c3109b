/// One request on one connection, read at little cost.
///
/// A small model generates tens of thousands of tokens per second. A client that parses each of
/// them falls behind and measures its own backlog. This client recognises a token by its method
/// name and parses only the reply and the end.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ipc/control/messages.hpp"
#include "tests/checks/bench/read_stream.hpp"

namespace leasehold::bench {

enum class LineKind { Token, Completed, Other };

/// Reads only the start of the line: the worker writes keys in a fixed order.
LineKind kind_of(std::string_view line);

class LightStream : public ReadStream {
 public:
  /// `on_end` is called once, last, with the end of the request or the reason for its failure.
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

 private:
  LightStream(control::Socket socket, Handlers handlers)
      : ReadStream(std::move(socket)), handlers_(std::move(handlers)) {}
  void use(std::string& unread) override;  // whole lines
  void lost(Error why) override;
  void read_line(std::string_view line);
  void end(Result<wire::RequestCompleted> how);

  Handlers handlers_;
};

}  // namespace leasehold::bench
