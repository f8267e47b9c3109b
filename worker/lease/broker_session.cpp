#include "worker/lease/broker_session.hpp"

#include <spdlog/spdlog.h>

#include "common/fault_point.hpp"
#include "common/random.hpp"

namespace leasehold {
namespace {

constexpr Duration kReadyTimeout = std::chrono::seconds(10);

using Phase = ReconnectState::Phase;

}  // namespace

Result<std::unique_ptr<BrokerSession>> BrokerSession::open(boost::asio::io_context& io,
                                                           const Clock& clock, Config config,
                                                           Handlers handlers) {
  std::unique_ptr<BrokerSession> session(
      new BrokerSession(io, clock, std::move(config), std::move(handlers)));
  session->link_ = TRY(BrokerLink::connect(
      io, session->config_.broker_socket,
      {.on_call = session->handlers_.on_call,
       .on_lost = [raw = session.get()](const Error& why) { raw->lost(why); }}));
  session->attachment_.emplace(TRY(attach_worker(*session->link_, session->config_.worker_name)));
  return session;
}

Result<wire::ExtentShape> BrokerSession::announce_ready(const wire::WorkerReady& ready,
                                                        LeaseService& leases) {
  ready_ = ready;
  ready_.request_id = {mint_request_id()};
  const control::Payload reply =
      TRY(link_->call(std::string(ready.kMethod), {.body = ready_.to_json()}, kReadyTimeout));
  const wire::ExtentShape shape = TRY(wire::ExtentShape::from_json(reply.body));
  leases_ = &leases;  // releases `ready_` to the I/O thread
  return shape;
}

void BrokerSession::lost(const Error& why) {
  const bool first = path_.phase() == Phase::Together;
  spdlog::warn("the broker's connection is gone reason=\"{}\"", why.detail);
  if (leases_ == nullptr) path_.give_up();
  path_.lost(clock_->now());
  if (first) {
    away_ = true;
    link_->buffer_reports();
    handlers_.on_connection_changed(true);
  }
  go_on();
}

/// What follows from the phase.
void BrokerSession::go_on() {
  if (path_.phase() == Phase::Away) return wait();
  if (path_.phase() != Phase::Refused || lost_.exchange(true)) return;
  handlers_.on_refused({Errc::BrokerLost, "there is no way back to the broker"});
}

void BrokerSession::wait() {
  timer_.expires_after(std::max(path_.next_try() - clock_->now(), Duration::zero()));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && path_.phase() == Phase::Away) try_to_return();
  });
}

void BrokerSession::try_to_return() {
  ++attempt_;
  if (!link_->reconnect()) {
    path_.not_connected(clock_->now());
    return go_on();
  }
  path_.connected();
  ask_to_resume();
}

/// Calls; an error, or an answer that is none, leads back to waiting or to the end.
template <class Message>
void BrokerSession::ask(const Message& message, std::vector<UniqueFd> fds,
                        std::move_only_function<void(const control::Json&)> then) {
  link_->call_async(
      std::string(message.kMethod), {.body = message.to_json(), .fds = std::move(fds)},
      [this, mine = attempt_, then = std::move(then)](Result<control::Payload> reply) mutable {
        if (mine != attempt_) return;
        if (!reply) return failed(reply.error());
        then(reply->body);
      },
      kReadyTimeout);
}

void BrokerSession::ask_to_resume() {
  const wire::WorkerAttach attach{
      .worker = config_.worker_name, .resume = attachment_->id, .request_id = {mint_request_id()}};
  ask(attach, {}, [this](const control::Json& body) {
    const auto attached = wire::WorkerAttached::from_json(body);
    const bool same = attached && attached->resumed && attached->worker == attachment_->worker;
    if (!same) return failed({Errc::UntrustedSegment, "the broker resumed something else"});
    path_.resumed();
    fault_point(FaultSite::WorkerResumed);
    deliver();
  });
}

void BrokerSession::deliver() {
  auto deliveries = leases_.load()->deliveries();
  if (!deliveries) return failed(deliveries.error());
  unanswered_ = deliveries->size();
  if (unanswered_ == 0) return report_ready();
  for (LeaseService::Delivery& delivery : *deliveries) {
    ask(delivery.message, std::move(delivery.fds), [this](const control::Json&) {
      if (--unanswered_ == 0) report_ready();
    });
  }
}

void BrokerSession::report_ready() {
  fault_point(FaultSite::WorkerRedelivered);
  ready_.request_id = {mint_request_id()};
  ask(ready_, {}, [this](const control::Json&) { settled(); });
}

void BrokerSession::settled() {
  path_.settled();
  away_ = false;
  link_->flush_reports();
  spdlog::info("the broker is back attachment={}", attachment_->id.value);
  handlers_.on_connection_changed(false);
}

void BrokerSession::failed(const Error& why) {
  if (path_.phase() != Phase::Asking && path_.phase() != Phase::Delivering) return;
  spdlog::warn("the broker did not take this worker back code={} detail=\"{}\"", name(why.code),
               why.detail);
  ++attempt_;
  link_->disconnect();
  path_.answered_with(why.code, clock_->now());
  go_on();
}

}  // namespace leasehold
