#include "tools/cell/broker_link.hpp"

#include <utility>

#include "ipc/http/async_value.hpp"
#include "ipc/http/http_await.hpp"

namespace leasehold::cell {
namespace {

using boost::asio::awaitable;

std::unexpected<Error> not_connected() {
  return fail(Errc::ConnectionLost,
              "the agent has no connection to the broker; check that the broker runs");
}

}  // namespace

Result<void> BrokerLink::connect() {
  close();
  auto socket = TRY(control::connect_to(io_, socket_));
  // A late notice about an earlier connection is not about this one.
  const auto own = std::make_shared<std::weak_ptr<control::Peer>>();
  const auto on_closed = [this, own](const Error&) {
    if (own->lock() == peer_) close();
  };
  peer_ = control::Peer::create(
      std::move(socket),
      {.on_call = [](const std::string&, control::Payload, control::Responder) {},
       .on_notification = [](const std::string&, control::Payload) {},
       .on_closed = on_closed});
  *own = peer_;
  peer_->start();
  return {};
}

void BrokerLink::close() {
  if (const auto peer = std::exchange(peer_, nullptr)) peer->close_now();
  ended_.cancel();
}

awaitable<void> BrokerLink::until_closed() {
  while (peer_ != nullptr) {
    ended_.expires_at(boost::asio::steady_timer::time_point::max());
    (void)co_await ended_.async_wait(http::kAwait);
  }
}

void BrokerLink::send(std::string method, wire::Json params, control::Peer::ReplyHandler on_reply) {
  if (peer_ == nullptr) return on_reply(not_connected());
  peer_->call(method, {.body = std::move(params), .fds = {}}, std::move(on_reply), kCallTimeout);
}

awaitable<Result<wire::Json>> BrokerLink::call(std::string method, wire::Json params) {
  if (peer_ == nullptr) co_return not_connected();
  http::AsyncValue<Result<control::Payload>> replied(io_);
  send(std::move(method), std::move(params), replied.giver());
  auto reply = co_await replied.take();
  if (!reply) co_return not_connected();  // `io` ends
  if (!*reply) co_return std::unexpected((*reply).error());
  co_return std::move((*reply)->body);
}

}  // namespace leasehold::cell
