/// The requests that run for one answer, each under a lease of its own that this process holds.
///
/// A session (ipc/client/session.hpp) acquires the lease with the client's API key, replaces it
/// when it ends, and continues the text there. Its events wait here until the answer takes them;
/// with kMaxWaiting of them for each request all end.
///
/// Lifetime: shared; `io` and `timers` outlive it. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "ipc/client/session.hpp"

namespace leasehold::http {

class Generations : public std::enable_shared_from_this<Generations> {
 public:
  static constexpr std::size_t kMaxWaiting = 1024;

  struct Event {
    std::size_t index = 0;  ///< Of the request, from 0.
    client::SessionEvent event;
  };

  /// Resumable requests are left at the worker when their events are not taken; `on_leave` is
  /// called just before, and may be null.
  static std::shared_ptr<Generations> start(boost::asio::io_context& io, client::Timers& timers,
                                            std::vector<client::SessionConfig> configs,
                                            std::function<void()> on_leave = nullptr);

  /// The next event that waits; the last one of a request is `Ended`.
  std::optional<Event> next();
  bool has_waiting() const { return !events_.empty(); }
  /// Waits until an event waits or `wake` was called, or `longest` has passed.
  boost::asio::awaitable<void> changed(std::optional<Duration> longest = std::nullopt);
  void wake();
  /// True once after `wake`.
  bool take_wake() { return std::exchange(is_woken_, false); }
  /// True when the requests were ended or left because the events were not taken.
  bool was_unread() const { return unread_; }
  /// Ends the requests within one unit. No further event need be taken.
  void cancel();
  /// Leaves resumable requests that run at the worker. No further event need be taken.
  void leave();

 private:
  explicit Generations(boost::asio::io_context& io) : io_(&io), changed_(io) {}
  void end_unread();
  void take(std::size_t index, client::SessionEvent event);

  boost::asio::io_context* io_;
  boost::asio::steady_timer changed_;  // cancelled to end `changed`
  std::deque<Event> events_;
  std::vector<std::shared_ptr<client::TenantSession>> sessions_;  // null once ended
  bool are_resumable_ = false;
  std::function<void()> on_leave_;
  bool is_woken_ = false;
  bool unread_ = false;  // too many events; only the ends follow
};

}  // namespace leasehold::http
