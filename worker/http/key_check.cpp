#include "worker/http/key_check.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
using asio::awaitable;

constexpr std::size_t kMaxKeyBytes = 128;

awaitable<Result<wire::KeyView>> check_key(Shared& shared, std::string key) {
  struct Waiting {
    explicit Waiting(asio::io_context& io) : timer(io) {}
    asio::steady_timer timer;
    std::optional<Result<wire::KeyView>> checked;
  };
  const auto waiting = std::make_shared<Waiting>(*shared.deps.io);
  waiting->timer.expires_at(asio::steady_timer::time_point::max());
  // The broker's link may keep this call longer than the thread of `io` lives.
  const auto on_checked = [weak = std::weak_ptr(waiting), io = shared.deps.io](auto checked) {
    asio::post(*io, [weak, checked = std::move(checked)]() mutable {
      const auto waits = weak.lock();
      if (!waits) return;
      waits->checked = std::move(checked);
      waits->timer.cancel();
    });
  };
  shared.deps.check_key(std::move(key), on_checked);
  if (!waiting->checked) co_await waiting->timer.async_wait(kAwait);
  if (waiting->checked) co_return *std::move(waiting->checked);
  co_return fail(Errc::BrokerLost, "this worker is stopping");
}

}  // namespace

awaitable<Result<Caller>> authenticate(Shared& shared, Places::ConnectionId id, const Head& head) {
  std::string key(head.bearer_key());
  if (key.empty() || key.size() > kMaxKeyBytes) {
    co_return fail(Errc::BadToken,
                   "send 'Authorization: Bearer KEY' with a key of `brokerctl keys create`");
  }
  asio::steady_timer pause(*shared.deps.io);
  while (!shared.closing) {
    const Duration wait = shared.places.pace_key(id, shared.deps.clock->now());
    if (wait == Duration::zero()) break;
    pause.expires_after(wait);
    co_await pause.async_wait(kAwait);
  }
  const Result<wire::KeyView> checked = co_await check_key(shared, key);
  if (!checked) co_return std::unexpected(checked.error());
  if (const auto kept = shared.places.authenticated(id, checked->tenant); !kept)
    co_return std::unexpected(kept.error());
  Caller caller;
  caller.tenant = checked->tenant;
  caller.key = std::move(key);
  co_return caller;
}

}  // namespace leasehold::http
