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
  const int number = connection_.next_number();
  return connection_.open(
      {.on_call = [](const std::string&, control::Payload, control::Responder) {},
       .on_notification =
           [this, number](const std::string& method, const control::Payload& params) {
             if (connection_.is_open(number)) on_notification_(method, params.body);
           },
       .on_closed =
           [this, number](const Error&) {
             if (connection_.is_open(number)) close();
           }});
}

void BrokerLink::close() {
  connection_.close_now();
  ended_.cancel();
}

awaitable<void> BrokerLink::until_closed() {
  while (is_connected()) {
    ended_.expires_at(boost::asio::steady_timer::time_point::max());
    (void)co_await ended_.async_wait(http::kAwait);
  }
}

void BrokerLink::send(std::string method, wire::Json params, control::Peer::ReplyHandler on_reply) {
  if (!is_connected()) return on_reply(not_connected());
  connection_.call(method, std::move(params), kCallTimeout, std::move(on_reply));
}

awaitable<Result<wire::Json>> BrokerLink::call(std::string method, wire::Json params) {
  if (!is_connected()) co_return not_connected();
  http::AsyncValue<Result<control::Payload>> replied(io_);
  send(std::move(method), std::move(params), replied.giver());
  auto reply = co_await replied.take();
  if (!reply) co_return not_connected();  // `io` ends
  if (!*reply) co_return std::unexpected((*reply).error());
  co_return std::move((*reply)->body);
}

}  // namespace leasehold::cell
