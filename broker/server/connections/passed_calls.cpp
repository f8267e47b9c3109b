#include "broker/server/connections/passed_calls.hpp"

#include <fmt/format.h>

#include <boost/asio/steady_timer.hpp>

namespace leasehold {

void PassedCalls::pass(const Destination& destination, const std::string& method,
                       const control::Json& params, OnReply on_reply) {
  const AttachmentId worker = destination.worker;
  if (destination.peer == nullptr)
    return on_reply(fail(Errc::BrokerLost, "the worker is reconnecting; retry in a moment"));
  const auto waiting = unanswered_.find(worker);
  if (waiting != unanswered_.end() && waiting->second >= kMaxUnanswered) {
    return on_reply(
        fail(Errc::QueueFull, fmt::format("{} calls wait for the worker's reply", kMaxUnanswered)));
  }
  ++unanswered_[worker];
  const auto timer = std::make_shared<boost::asio::steady_timer>(io_, kTimeout);
  timer->async_wait([on_reply](const boost::system::error_code& error) {
    if (!error) on_reply(fail(Errc::TimedOut, "the worker does not reply; see its log"));
  });
  destination.peer->call(method, {.body = params},
                         [this, worker, timer, on_reply](Result<control::Payload> reply) {
                           timer->cancel();
                           answered(worker);
                           on_reply(std::move(reply));
                         });
}

void PassedCalls::answered(AttachmentId worker) {
  const auto waiting = unanswered_.find(worker);
  if (--waiting->second == 0) unanswered_.erase(waiting);
}

}  // namespace leasehold
