#include "worker/http/generations.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace leasehold::http {

namespace asio = boost::asio;

std::shared_ptr<Generations> Generations::start(asio::io_context& io, client::Timers& timers,
                                                std::vector<client::SessionConfig> configs,
                                                std::function<void()> on_leave) {
  std::shared_ptr<Generations> self(new Generations(io, timers));
  self->on_leave_ = std::move(on_leave);
  self->are_resumable_ = std::ranges::all_of(
      configs, [](const client::SessionConfig& config) { return config.request.resumable; });
  for (client::SessionConfig& config : configs) self->create(std::move(config));
  // A session that cannot connect ends within this call.
  for (std::size_t i = 0; i < self->sessions_.size(); ++i)
    if (const auto session = self->sessions_[i]) session->start();
  return self;
}

/// The observer holds this object, which holds the session. `take` breaks this cycle when the
/// session ends.
void Generations::create(client::SessionConfig config) {
  const std::size_t index = sessions_.size();
  sessions_.push_back(
      client::TenantSession::create(*io_, *timers_, std::move(config),
                                    [self = shared_from_this(), index](client::SessionEvent event) {
                                      self->take(index, std::move(event));
                                    }));
}

void Generations::add(client::SessionConfig config) {
  are_resumable_ = are_resumable_ && config.request.resumable;
  create(std::move(config));
  const auto session = sessions_.back();
  session->start();
}

void Generations::take(std::size_t index, client::SessionEvent event) {
  const bool is_end = std::holds_alternative<client::Ended>(event);
  if (!unread_ || is_end) events_.push_back({index, std::move(event)});
  if (is_end) {
    // Destroy the session later, because it is the caller of this function.
    asio::post(*io_, [ended = std::move(sessions_[index])] {});
  } else if (!unread_ && events_.size() >= kMaxWaiting * sessions_.size()) {
    unread_ = true;
    asio::post(*io_, [self = shared_from_this()] { self->end_unread(); });
  }
  changed_.cancel();
}

void Generations::wake() {
  is_woken_ = true;
  changed_.cancel();
}

std::optional<Generations::Event> Generations::next() {
  if (events_.empty()) return std::nullopt;
  std::optional<Event> event = std::move(events_.front());
  events_.pop_front();
  return event;
}

asio::awaitable<void> Generations::changed(std::optional<Duration> longest) {
  if (!events_.empty() || is_woken_) co_return;
  if (longest) changed_.expires_after(*longest);
  if (!longest) changed_.expires_at(asio::steady_timer::time_point::max());
  co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
}

/// Leaves resumable requests running, because the client can come back for what it has not read.
void Generations::end_unread() {
  are_resumable_ ? leave() : cancel();
}

void Generations::leave() {
  const bool runs =
      std::ranges::any_of(sessions_, [](const auto& each) { return each != nullptr; });
  if (runs && on_leave_) on_leave_();
  for (const auto& session : std::vector(sessions_))
    if (session) session->leave();
}

void Generations::cancel() {
  for (const auto& session : std::vector(sessions_))
    if (session) session->cancel();
}

}  // namespace leasehold::http
