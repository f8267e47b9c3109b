#include "worker/lease/broker_link.hpp"

#include <boost/asio/post.hpp>
#include <future>

namespace leasehold {

Result<std::unique_ptr<BrokerLink>> BrokerLink::connect(boost::asio::io_context& io,
                                                        const std::string& path,
                                                        Handlers handlers) {
  control::Socket socket = TRY(control::connect_to(io, path));
  std::unique_ptr<BrokerLink> link(new BrokerLink(io, path, std::move(handlers)));
  link->peer_ = link->make_peer(std::move(socket));
  boost::asio::post(io, [peer = link->peer_] { peer->start(); });
  return link;
}

std::shared_ptr<control::Peer> BrokerLink::make_peer(control::Socket socket) {
  return control::Peer::create(std::move(socket),
                               {.on_call = handlers_.on_call,
                                .on_notification = {},
                                .on_closed = [this, mine = ++connections_](const Error& why) {
                                  if (mine == connections_) handlers_.on_disconnected(why);
                                }});
}

Result<void> BrokerLink::reconnect() {
  peer_ = make_peer(TRY(control::connect_to(*io_, path_)));
  peer_->start();
  return {};
}

void BrokerLink::disconnect() {
  ++connections_;
  peer_->close();
}

Result<control::Payload> BrokerLink::call(const std::string& method, control::Payload params,
                                          Duration timeout) {
  std::promise<Result<control::Payload>> promise;
  auto answer = promise.get_future();
  call_async(
      method, std::move(params),
      [&promise](Result<control::Payload> reply) { promise.set_value(std::move(reply)); }, timeout);
  return answer.get();
}

void BrokerLink::call_async(const std::string& method, control::Payload params,
                            control::Peer::ReplyHandler on_reply, Duration timeout) {
  boost::asio::post(*io_, [this, method, params = std::move(params), on_reply = std::move(on_reply),
                           timeout]() mutable {
    peer_->call(method, std::move(params), std::move(on_reply), timeout);
  });
}

void BrokerLink::notify(const std::string& method, control::Payload params) {
  boost::asio::post(*io_, [this, method, params = std::move(params)]() mutable {
    peer_->notify(method, std::move(params));
  });
}

void BrokerLink::report(const events::Event& event, TimePoint at) {
  // Serialised on the I/O thread: the caller may be a gate thread within a unit.
  boost::asio::post(*io_, [this, event, at] {
    buffered_.push(events::to_json(event, at).dump());
    if (!buffering_) flush_reports();
  });
}

void BrokerLink::flush_reports() {
  buffering_ = false;
  while (!buffered_.empty()) {
    const wire::EventReport report{.events = buffered_.take()};
    peer_->notify(std::string(report.kMethod), {.body = report.to_json()});
  }
}

}  // namespace leasehold
