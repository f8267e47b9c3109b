#include "worker/http/generation.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace leasehold::http {

namespace asio = boost::asio;

std::shared_ptr<Generation> Generation::start(asio::io_context& io, client::Timers& timers,
                                              client::SessionConfig config) {
  std::shared_ptr<Generation> self(new Generation(io));
  // The cycle of session and observer ends with the session.
  self->session_ = client::TenantSession::create(
      io, timers, std::move(config),
      [self](const client::SessionEvent& event) { self->take(event); });
  self->session_->start();
  return self;
}

void Generation::take(const client::SessionEvent& event) {
  const bool is_end = std::holds_alternative<client::Ended>(event);
  if (!unread_ || is_end) events_.push_back(event);
  if (is_end) {
    // The session is in the middle of this call.
    asio::post(*io_, [ended = std::move(session_)] {});
  } else if (!unread_ && events_.size() >= kMaxWaiting) {
    unread_ = true;
    asio::post(*io_, [self = shared_from_this()] { self->cancel(); });
  }
  wake();
}

asio::awaitable<std::optional<client::SessionEvent>> Generation::next() {
  if (events_.empty()) {
    changed_.expires_at(asio::steady_timer::time_point::max());
    co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  if (events_.empty()) co_return std::nullopt;
  client::SessionEvent event = std::move(events_.front());
  events_.pop_front();
  co_return event;
}

void Generation::cancel() {
  if (session_) session_->cancel();
}

}  // namespace leasehold::http
