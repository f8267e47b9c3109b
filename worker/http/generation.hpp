/// One request that runs for an HTTP connection, under a lease of its own that this process holds.
///
/// The session (tools/client/session.hpp) acquires the lease with the client's API key, replaces it
/// when it ends, and continues the text there. Its events wait here until the connection takes
/// them; with kMaxWaiting of them the request ends.
///
/// Lifetime: shared; `io` and `timers` outlive it. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>

#include "tools/client/session.hpp"

namespace leasehold::http {

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  static constexpr std::size_t kMaxWaiting = 1024;

  static std::shared_ptr<Generation> start(boost::asio::io_context& io, client::Timers& timers,
                                           client::SessionConfig config);

  /// The next event; `Ended` is the last one. With nothing to take it waits until there is an event
  /// or `wake` is called, and returns nothing after a wake.
  boost::asio::awaitable<std::optional<client::SessionEvent>> next();
  void wake() { changed_.cancel(); }
  /// True when the request was ended because the events were not taken.
  bool was_unread() const { return unread_; }
  /// Ends the request within one unit. No further event need be taken.
  void cancel();

 private:
  explicit Generation(boost::asio::io_context& io) : io_(&io), changed_(io) {}
  void take(const client::SessionEvent& event);

  boost::asio::io_context* io_;
  boost::asio::steady_timer changed_;  // expires never; cancelled to wake `next`
  std::deque<client::SessionEvent> events_;
  std::shared_ptr<client::TenantSession> session_;  // until it has ended
  bool unread_ = false;                             // too many events; only the end follows
};

}  // namespace leasehold::http
