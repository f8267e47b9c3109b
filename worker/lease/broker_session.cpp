#include "worker/lease/broker_session.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <thread>
#include <utility>

#include "common/fault_point.hpp"
#include "common/random.hpp"

namespace leasehold {
namespace {

constexpr Duration kReadyTimeout = std::chrono::seconds(10);
/// Interval of connection attempts while a worker waits for its broker to start.
constexpr auto kConnectInterval = std::chrono::milliseconds(50);

using Phase = ReconnectState::Phase;

}  // namespace

Result<std::unique_ptr<BrokerSession>> BrokerSession::open(boost::asio::io_context& io,
                                                           const Clock& clock, Config config,
                                                           Handlers handlers) {
  std::unique_ptr<BrokerSession> session(
      new BrokerSession(io, clock, std::move(config), std::move(handlers)));
  session->link_ = TRY(session->await_broker(io));
  session->attachment_.emplace(TRY(attach_worker(*session->link_, session->config_.worker_name)));
  return session;
}

/// Retries until the broker listens, so that broker and worker may start in any order.
Result<std::unique_ptr<BrokerLink>> BrokerSession::await_broker(boost::asio::io_context& io) {
  const TimePoint deadline = clock_->now() + config_.timeout;
  for (bool is_logged = false;; std::this_thread::sleep_for(kConnectInterval)) {
    auto link = BrokerLink::connect(
        io, config_.broker_socket,
        {.on_call = handlers_.on_call,
         .on_disconnected = [this](const Error& why) { connection_lost(why); }});
    const bool is_not_listening = !link && (link.error().code == Errc::FileNotFound ||
                                            link.error().code == Errc::ConnectionRefused);
    if (!is_not_listening) return link;
    if (clock_->now() >= deadline) {
      return fail(Errc::BrokerLost,
                  fmt::format("no broker within {} ms (--broker-timeout-ms): {}",
                              config_.timeout / std::chrono::milliseconds(1), link.error().detail));
    }
    if (!std::exchange(is_logged, true)) {
      spdlog::warn("waiting for the broker timeout_ms={} reason=\"{}\"",
                   config_.timeout / std::chrono::milliseconds(1), link.error().detail);
    }
  }
}

Result<wire::ExtentShape> BrokerSession::announce_ready(const wire::WorkerReady& ready,
                                                        LeaseService& leases) {
  ready_ = ready;
  ready_.request_id = {mint_request_id()};
  const control::Payload reply =
      TRY(link_->call(std::string(ready.kMethod), {.body = ready_.to_json()}, kReadyTimeout));
  const wire::ExtentShape shape = TRY(wire::ExtentShape::from_json(reply.body));
  leases_ = &leases;  // publishes `ready_` to the I/O thread
  return shape;
}

void BrokerSession::connection_lost(const Error& why) {
  const bool was_attached = reconnect_.phase() == Phase::Attached;
  spdlog::warn("broker disconnected reason=\"{}\"", why.detail);
  if (leases_ == nullptr) reconnect_.give_up();
  reconnect_.connection_lost(clock_->now());
  if (was_attached) {
    disconnected_ = true;
    link_->buffer_reports();
    handlers_.on_connection_changed(true);
  }
  advance(why);
}

/// Performs the action of the current phase. `why` is the failure that led to it.
void BrokerSession::advance(const Error& why) {
  if (reconnect_.phase() == Phase::Disconnected) return schedule_reconnect();
  if (reconnect_.phase() != Phase::Lost || lost_.exchange(true)) return;
  handlers_.on_broker_lost(
      {Errc::BrokerLost, fmt::format("the worker cannot reconnect to the broker: {}", why.detail)});
}

void BrokerSession::schedule_reconnect() {
  timer_.expires_after(std::max(reconnect_.next_attempt() - clock_->now(), Duration::zero()));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && reconnect_.phase() == Phase::Disconnected) try_reconnect();
  });
}

void BrokerSession::try_reconnect() {
  ++attempt_;
  if (const auto connected = link_->reconnect(); !connected) {
    reconnect_.connect_failed(clock_->now());
    return advance(connected.error());
  }
  reconnect_.connected();
  request_resume();
}

/// Sends a call as part of this reconnect attempt. An error ends the attempt.
template <class Message>
void BrokerSession::call(const Message& message, std::vector<UniqueFd> fds,
                         std::move_only_function<void(const control::Json&)> then) {
  link_->call_async(
      std::string(message.kMethod), {.body = message.to_json(), .fds = std::move(fds)},
      [this, mine = attempt_, then = std::move(then)](Result<control::Payload> reply) mutable {
        if (mine != attempt_) return;
        if (!reply) return resume_failed(reply.error());
        then(reply->body);
      },
      kReadyTimeout);
}

void BrokerSession::request_resume() {
  const wire::WorkerAttach attach{.worker = config_.worker_name,
                                  .resume = attachment_->id,
                                  .protocol = wire::kWorkerProtocol,
                                  .request_id = {mint_request_id()}};
  call(attach, {}, [this](const control::Json& body) {
    const auto attached = wire::WorkerAttached::from_json(body);
    const bool is_same_attachment =
        attached && attached->resumed && attached->worker == attachment_->worker;
    if (!is_same_attachment)
      return resume_failed({Errc::UntrustedSegment, "the broker resumed another attachment"});
    if (const auto checked = check_protocol(*attached); !checked)
      return resume_failed(checked.error());
    reconnect_.resumed();
    fault_point(FaultSite::WorkerResumed);
    // Waits for grants in progress: the broker checks scrubbed memory for later writes, and
    // prefaulting would count as a write.
    leases_.load()->when_installed([this, mine = attempt_] {
      if (mine == attempt_) redeliver();
    });
  });
}

void BrokerSession::redeliver() {
  auto redeliveries = leases_.load()->redeliveries();
  if (!redeliveries) return resume_failed(redeliveries.error());
  pending_replies_ = redeliveries->size();
  if (pending_replies_ == 0) return report_ready();
  for (LeaseService::Redelivery& redelivery : *redeliveries) {
    call(redelivery.message, std::move(redelivery.fds), [this](const control::Json&) {
      if (--pending_replies_ == 0) report_ready();
    });
  }
}

void BrokerSession::report_ready() {
  fault_point(FaultSite::WorkerRedelivered);
  ready_.request_id = {mint_request_id()};
  call(ready_, {}, [this](const control::Json&) { reattached(); });
}

void BrokerSession::reattached() {
  reconnect_.reattached();
  disconnected_ = false;
  link_->flush_reports();
  spdlog::info("broker reconnected attachment={}", attachment_->id.value);
  handlers_.on_connection_changed(false);
}

void BrokerSession::resume_failed(const Error& why) {
  if (reconnect_.phase() != Phase::Resuming && reconnect_.phase() != Phase::Redelivering) return;
  spdlog::warn("resume failed code={} detail=\"{}\"", name(why.code), why.detail);
  ++attempt_;
  link_->disconnect();
  reconnect_.request_failed(why.code, clock_->now());
  advance(why);
}

}  // namespace leasehold
