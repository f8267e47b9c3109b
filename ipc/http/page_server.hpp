/// Serves a few pages to every client that can connect: `GET` and `HEAD`, without key and body. A
/// Unix socket is open to its user and group only. After an answer that is not a page, the server
/// closes the connection.
///
/// The server is for monitoring, so it must cost the program little: at most 32 connections, a head
/// of at most 16 KiB within ten seconds, 60 s between two requests. A 33rd connection closes the
/// oldest one.
///
/// Lifetime: `io` outlives the server, and has stopped before the server is destroyed. Threads: the
/// one that runs `io`, except `create`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ipc/http/http_address.hpp"
#include "ipc/http/http_answer.hpp"
#include "ipc/http/http_host.hpp"

namespace leasehold::http {

struct Page {
  std::string path;
  /// Called on the thread of `io` for each request; must not throw.
  std::function<Answer()> make;
};

class PageServer {
 public:
  static constexpr std::size_t kMaxConnections = 32;

  /// Listens at once; connections wait in the backlog until `serve`. Errors: those of
  /// Listener::create. A request that `hosts` does not allow gets 421.
  static Result<std::unique_ptr<PageServer>> create(boost::asio::io_context& io,
                                                    const Address& address, std::vector<Page> pages,
                                                    HostRule hosts = {});
  ~PageServer();

  std::string listens_on() const;
  void serve();
  /// Stops accepting connections, and closes the open ones.
  void close();

 private:
  struct State;
  explicit PageServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace leasehold::http
