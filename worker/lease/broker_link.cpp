#include "worker/lease/broker_link.hpp"

#include <boost/asio/post.hpp>
#include <future>

namespace leasehold {

Result<std::unique_ptr<BrokerLink>> BrokerLink::connect(boost::asio::io_context& io,
                                                        const std::string& path,
                                                        Handlers handlers) {
  control::Socket socket = TRY(control::connect_to(io, path));
  auto peer = control::Peer::create(std::move(socket), {.on_call = std::move(handlers.on_call),
                                                        .on_notification = {},
                                                        .on_closed = std::move(handlers.on_lost)});
  boost::asio::post(io, [peer] { peer->start(); });
  return std::unique_ptr<BrokerLink>(new BrokerLink(io, std::move(peer)));
}

Result<control::Payload> BrokerLink::call(const std::string& method, control::Payload params,
                                          Duration timeout) {
  std::promise<Result<control::Payload>> promise;
  auto answer = promise.get_future();
  boost::asio::post(*io_, [&, timeout, params = std::move(params)]() mutable {
    peer_->call(
        method, std::move(params),
        [&promise](Result<control::Payload> reply) { promise.set_value(std::move(reply)); },
        timeout);
  });
  return answer.get();
}

void BrokerLink::call_async(const std::string& method, control::Payload params,
                            control::Peer::ReplyHandler on_reply) {
  boost::asio::post(*io_, [peer = peer_, method, params = std::move(params),
                           on_reply = std::move(on_reply)]() mutable {
    peer->call(method, std::move(params), std::move(on_reply));
  });
}

void BrokerLink::report(const events::Event& event, TimePoint at) {
  // Made into JSON over there: the caller may be a unit that somebody waits for.
  boost::asio::post(*io_, [peer = peer_, event, at] {
    const wire::EventReport report{.events = {events::to_json(event, at).dump()}};
    peer->notify(std::string(wire::EventReport::kMethod), {.body = report.to_json()});
  });
}

}  // namespace leasehold
