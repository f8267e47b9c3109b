/// Serves a few pages to anyone who can connect: `GET` and `HEAD`, no key, no body. A Unix socket
/// is open to its user and group only. The connection ends after any answer but a page.
///
/// It is for observers, so it may not cost the program much: at most 32 connections, a head of at
/// most 16 KiB within ten seconds, 60 s between two requests. A further connection closes the
/// oldest one.
///
/// Lifetime: `io` outlives it, and has stopped before it ends. Threads: the one that runs `io`,
/// except `create`.
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
  /// Listener::create. `hosts` refuses with 421.
  static Result<std::unique_ptr<PageServer>> create(boost::asio::io_context& io,
                                                    const Address& address, std::vector<Page> pages,
                                                    HostRule hosts = {});
  ~PageServer();

  std::string listens_on() const;
  void serve();
  /// Accepts no more, and closes what is open.
  void close();

 private:
  struct State;
  explicit PageServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace leasehold::http
