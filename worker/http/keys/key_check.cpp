#include "worker/http/keys/key_check.hpp"

#include <boost/asio/steady_timer.hpp>

#include "ipc/http/async_value.hpp"

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
using asio::awaitable;

constexpr std::size_t kMaxKeyBytes = 128;

awaitable<Result<wire::KeyOwner>> check_key(Shared& shared, std::string key,
                                            std::optional<HostName> moved_from) {
  AsyncValue<Result<wire::KeyOwner>> checked(*shared.deps.io);
  // The broker's link may keep this callback after the thread of `io` has ended, and the callback
  // then does nothing.
  wire::KeyCheck asked;
  asked.api_key = std::move(key);
  shared.deps.check_key(std::move(asked), std::move(moved_from), checked.giver());
  auto answer = co_await checked.take();
  if (answer) co_return *std::move(answer);
  co_return fail(Errc::BrokerLost, "this worker is stopping");
}

}  // namespace

Error key_check_failure(Error why) {
  if (why.code != Errc::ConnectionLost && why.code != Errc::TimedOut) return why;
  return {Errc::BrokerLost,
          "this worker has lost its broker; try again in a moment, or use another worker"};
}

awaitable<Result<Caller>> authenticate(Shared& shared, Places::ConnectionId id, const Head& head,
                                       std::optional<HostName> moved_from) {
  std::string key(head.api_key());
  if (key.empty() || key.size() > kMaxKeyBytes) {
    co_return fail(Errc::BadToken,
                   "send 'Authorization: Bearer KEY' or 'x-api-key: KEY' with a key of "
                   "`brokerctl keys create`");
  }
  asio::steady_timer pause(*shared.deps.io);
  while (!shared.closing && !shared.known_keys.contains(key)) {
    const Duration wait = shared.places.pace_key(id, shared.deps.clock->now());
    if (wait == Duration::zero()) break;
    pause.expires_after(wait);
    co_await pause.async_wait(kAwait);
  }
  const Result<wire::KeyOwner> checked = co_await check_key(shared, key, std::move(moved_from));
  if (!checked && checked.error().code == Errc::BadToken) {
    shared.known_keys.refused(key);
    if (shared.deps.refused_keys != nullptr) shared.deps.refused_keys->add();
  }
  if (!checked) co_return std::unexpected(key_check_failure(checked.error()));
  shared.known_keys.accepted(key, checked->tenant);
  if (const auto kept = shared.places.authenticated(id, checked->tenant); !kept)
    co_return std::unexpected(kept.error());
  Caller caller;
  caller.connection = id;
  caller.tenant = checked->tenant;
  caller.tenant_admitted_unix_ms = checked->tenant_admitted_unix_ms;
  caller.key = std::move(key);
  caller.key_id = checked->key;
  if (const auto last = head.only("Last-Event-ID")) caller.last_event_id = std::string(*last);
  co_return caller;
}

}  // namespace leasehold::http
