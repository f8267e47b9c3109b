/// The requests that run for one answer, each in a session whose lease this process holds.
///
/// A session (ipc/client/session.hpp) acquires the lease with the client's API key, replaces the
/// lease when it ends, and continues the text under the new one. Session events are queued here
/// until the answer takes them. When the queue has kMaxWaiting events per request, all requests are
/// cancelled, or left running at the worker if they are resumable.
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
    std::size_t index = 0;  ///< Index of the request, from 0.
    client::SessionEvent event;
  };

  /// `on_leave`, which may be null, is called just before resumable requests are left running at
  /// the worker.
  static std::shared_ptr<Generations> start(boost::asio::io_context& io, client::Timers& timers,
                                            std::vector<client::SessionConfig> configs,
                                            std::function<void()> on_leave = nullptr);

  /// Starts one more request, with the next index.
  void add(client::SessionConfig config);

  /// The next queued event. The last event of each request is `Ended`.
  std::optional<Event> next();
  bool has_waiting() const { return !events_.empty(); }
  /// Waits until an event is queued, `wake` is called, or `longest` has passed.
  boost::asio::awaitable<void> changed(std::optional<Duration> longest = std::nullopt);
  void wake();
  /// True once after `wake`.
  bool take_wake() { return std::exchange(is_woken_, false); }
  /// True if the requests were cancelled or left because the queue was full.
  bool was_unread() const { return unread_; }
  /// Cancels the requests, which end within one unit. The remaining events need not be taken.
  void cancel();
  /// Leaves resumable requests running at the worker. The remaining events need not be taken.
  void leave();

 private:
  Generations(boost::asio::io_context& io, client::Timers& timers)
      : io_(&io), timers_(&timers), changed_(io) {}
  void create(client::SessionConfig config);
  void end_unread();
  void take(std::size_t index, client::SessionEvent event);

  boost::asio::io_context* io_;
  client::Timers* timers_;
  boost::asio::steady_timer changed_;  // cancelled to end `changed`
  std::deque<Event> events_;
  std::vector<std::shared_ptr<client::TenantSession>> sessions_;  // null once ended
  bool are_resumable_ = false;
  std::function<void()> on_leave_;
  bool is_woken_ = false;
  bool unread_ = false;  // the queue was full; only `Ended` is queued now
};

}  // namespace leasehold::http
