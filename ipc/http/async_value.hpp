/// Lets a coroutine of `io` wait for a value that another thread or a callback makes.
///
/// Lifetime: `io` outlives every giver. Threads: the one that runs `io`, except for the giver.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "ipc/http/http_await.hpp"

namespace leasehold::http {

template <class T>
class AsyncValue {
 public:
  explicit AsyncValue(boost::asio::io_context& io)
      : io_(&io), waiting_(std::make_shared<Waiting>(io)) {
    waiting_->timer.expires_at(boost::asio::steady_timer::time_point::max());
  }

  /// Returns the function that gives the value. Call that function once, on any thread. The
  /// coroutine may have ended by then.
  auto giver() const {
    return [weak = std::weak_ptr(waiting_), io = io_](T value) {
      boost::asio::post(*io, [weak, value = std::move(value)]() mutable {
        const auto waiting = weak.lock();
        if (!waiting) return;
        waiting->value = std::move(value);
        waiting->timer.cancel();
      });
    };
  }

  /// Waits for the value. Returns nothing if `io` ends the wait. Call once.
  boost::asio::awaitable<std::optional<T>> take() {
    if (!waiting_->value) co_await waiting_->timer.async_wait(kAwait);
    co_return std::move(waiting_->value);
  }

 private:
  struct Waiting {
    explicit Waiting(boost::asio::io_context& io) : timer(io) {}
    boost::asio::steady_timer timer;  // never expires; cancelled to wake `take`
    std::optional<T> value;
  };
  boost::asio::io_context* io_;
  std::shared_ptr<Waiting> waiting_;
};

}  // namespace leasehold::http
