#include "worker/lease/broker_link.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <future>
#include <utility>

namespace leasehold {
namespace {

/// Unsent bytes beyond which reports wait in the worker, far below Limits::max_queued_bytes.
constexpr std::size_t kMaxBacklogBytes = 256 << 10;
constexpr auto kUsageRetryInterval = std::chrono::seconds(1);
constexpr auto kUsageReportsTimeout = std::chrono::seconds(2);

/// The tenant of an event; empty for an event of the worker itself.
TenantId tenant_of(const events::Event& event) {
  return std::visit(
      [](const auto& e) {
        if constexpr (requires { TenantId{e.tenant}; }) return TenantId{e.tenant};
        return TenantId{};
      },
      event);
}

}  // namespace

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
  return control::Peer::create(
      std::move(socket), {.on_call = handlers_.on_call,
                          .on_notification =
                              [this](const std::string& method, control::Payload params) {
                                handlers_.on_call(method, std::move(params), [](const auto&) {});
                              },
                          .on_closed =
                              [this, mine = ++connections_](const Error& why) {
                                if (mine == connections_) handlers_.on_disconnected(why);
                              },
                          .on_drained = [this] { send_waiting(); }});
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

void BrokerLink::report_usage(const wire::TenantUsage& usage) {
  boost::asio::post(*io_, [this, usage] {
    usage_.insert_or_assign(usage.tenant, usage);
    send_waiting();
  });
}

void BrokerLink::report_served(const wire::TenantServed& served) {
  boost::asio::post(*io_, [this, served] {
    wire::TenantServed& waiting = served_[served.tenant];
    waiting.tenant = served.tenant;
    waiting.add(served);
    send_waiting();
  });
}

void BrokerLink::report_usage_record(wire::UsageRecord record) {
  boost::asio::post(*io_, [this, record = std::move(record)]() mutable {
    usage_records_.push(std::move(record));
    if (const std::uint64_t dropped = usage_records_.take_dropped())
      spdlog::warn("dropped usage records that the broker did not take records={}", dropped);
    send_waiting();
  });
}

bool BrokerLink::is_reporting_usage() const {
  return !buffering_ && !usage_refused_ && !usage_records_.empty();
}

void BrokerLink::when_usage_reported(std::move_only_function<void()> done) {
  when_usage_reported_ = std::move(done);
  check_usage_reported();
}

/// The promise is shared, because it may be fulfilled after the timeout.
bool BrokerLink::await_usage_reports() {
  const auto reported = std::make_shared<std::promise<void>>();
  boost::asio::post(
      *io_, [this, reported] { when_usage_reported([reported] { reported->set_value(); }); });
  return reported->get_future().wait_for(kUsageReportsTimeout) == std::future_status::ready;
}

void BrokerLink::check_usage_reported() {
  if (when_usage_reported_ && !is_reporting_usage()) std::exchange(when_usage_reported_, nullptr)();
}

void BrokerLink::buffer_reports() {
  buffering_ = true;
  check_usage_reported();
}

void BrokerLink::send_usage_records() {
  if (buffering_ || usage_refused_) return;
  const auto report = usage_records_.take();
  if (!report) return;
  peer_->call(std::string(report->kMethod), {.body = report->to_json()},
              [this](const Result<control::Payload>& reply) { usage_records_answered(reply); });
}

/// Handles the reply to a report of usage records. Records that the broker failed to write are sent
/// again later; after a lost connection, once the broker is back. Records that the broker refuses
/// permanently are dropped: an older broker does not store usage records.
void BrokerLink::usage_records_answered(const Result<control::Payload>& reply) {
  const Errc code = reply ? Errc{} : reply.error().code;
  const bool is_final = !reply && (code == Errc::UnknownMethod || code == Errc::PermissionDenied ||
                                   code == Errc::BadRequest);
  if (is_final) {
    spdlog::warn("the broker refuses usage records code={} detail=\"{}\"", name(code),
                 reply.error().detail);
  }
  if (reply || is_final) {
    usage_records_.confirmed();
    send_usage_records();
    return check_usage_reported();
  }
  usage_records_.failed();
  if (code == Errc::ConnectionLost) return;
  usage_refused_ = true;
  check_usage_reported();
  usage_retry_.expires_after(kUsageRetryInterval);
  usage_retry_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    usage_refused_ = false;
    send_usage_records();
  });
}

void BrokerLink::report_step(const wire::WorkerStep& step, std::function<void()> on_reply) {
  call_async(std::string(step.kMethod), {.body = step.to_json()},
             [on_reply = std::move(on_reply)](const Result<control::Payload>& reply) {
               if (!reply) spdlog::debug("step not reported: {}", reply.error().detail);
               on_reply();
             });
}

void BrokerLink::report(const events::Event& event, TimePoint at) {
  // Serialised on the I/O thread: the caller may be a gate thread within a unit.
  boost::asio::post(*io_, [this, event, at] {
    buffered_.push(tenant_of(event), events::to_json(event, at).dump());
    send_waiting();
  });
}

void BrokerLink::flush_reports() {
  buffering_ = false;
  send_waiting();
}

bool BrokerLink::broker_reads() const {
  return peer_->queued_bytes() < kMaxBacklogBytes;
}

/// Sends kept reports while the broker reads. Other messages of the link need no queue, because the
/// leases and running requests bound their number.
void BrokerLink::send_waiting() {
  while (!buffering_ && !buffered_.empty() && broker_reads()) {
    const wire::EventReport report{.events = buffered_.take()};
    peer_->notify(std::string(report.kMethod), {.body = report.to_json()});
  }
  while (!buffering_ && !usage_.empty() && broker_reads()) {
    const auto next = usage_.extract(usage_.begin());
    const wire::TenantUsage& usage = next.mapped();
    peer_->notify(std::string(usage.kMethod), {.body = usage.to_json()});
  }
  while (!buffering_ && !served_.empty() && broker_reads()) {
    const auto next = served_.extract(served_.begin());
    const wire::TenantServed& served = next.mapped();
    peer_->notify(std::string(served.kMethod), {.body = served.to_json()});
  }
  if (!broker_reads()) return;
  send_usage_records();
  if (const std::uint64_t dropped = buffered_.take_dropped()) {
    spdlog::warn("dropped reports to a broker that did not read reports={}", dropped);
  }
}

}  // namespace leasehold
