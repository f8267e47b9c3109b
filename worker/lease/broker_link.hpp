/// The worker's connection to its broker.
///
/// Threads: `call` blocks and is for every thread but the I/O thread; `call_async` and `report` are
/// for any thread; the other functions and the handlers run on the I/O thread. Lifetime: the
/// io_context stops before the link is destroyed.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>

#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/transport/peer.hpp"
#include "worker/lease/report_queue.hpp"
#include "worker/lease/usage_queue.hpp"

namespace leasehold {

class BrokerLink {
 public:
  struct Handlers {
    /// Also called for a notification, whose answer is dropped.
    std::function<void(const std::string& method, control::Payload, control::Responder)> on_call;
    /// The connection is lost. Leases continue until their deadlines.
    std::function<void(const Error&)> on_disconnected;
  };

  /// Errors: those of control::connect_to.
  static Result<std::unique_ptr<BrokerLink>> connect(boost::asio::io_context& io,
                                                     const std::string& path, Handlers handlers);

  /// Replaces the lost connection by a new one. Errors: those of `connect`.
  Result<void> reconnect();
  /// Closes the connection without calling `on_disconnected`.
  void disconnect();

  /// Calls the broker and waits. Errors: the broker's answer, TimedOut, ConnectionLost.
  Result<control::Payload> call(const std::string& method, control::Payload params,
                                Duration timeout);

  /// Calls without waiting. `on_reply` runs on the I/O thread, once. A timeout of zero means none.
  void call_async(const std::string& method, control::Payload params,
                  control::Peer::ReplyHandler on_reply, Duration timeout = Duration::zero());

  /// Does nothing while the broker is disconnected. For any thread.
  void notify(const std::string& method, control::Payload params);

  /// Sends the usage of a tenant. While reports are buffered or the broker does not read, only the
  /// newest usage of each tenant is kept.
  void report_usage(const wire::TenantUsage& usage);

  /// Sends the service that a tenant received. While reports are buffered or the broker does not
  /// read, the counts are summed.
  void report_served(const wire::TenantServed& served);

  /// Sends the usage record of a finished request, and repeats it until the broker has written it
  /// to its journal; the broker ignores duplicates. Unconfirmed records are lost when this process
  /// ends.
  void report_usage_record(wire::UsageRecord record);
  /// Calls `done` once, on the I/O thread, when all records are confirmed or no connected broker
  /// will confirm them; possibly from within this call. Replaces an earlier `done` that was not
  /// called yet.
  void when_usage_reported(std::move_only_function<void()> done);
  /// Waits at most two seconds for the condition of `when_usage_reported`; returns false after the
  /// timeout. Not for the I/O thread, which must keep running.
  bool await_usage_reports();

  /// Sends a sampled step, and calls `on_reply` on the I/O thread, also when the step was not
  /// reported.
  void report_step(const wire::WorkerStep& step, std::function<void()> on_reply);

  /// Sends an event to the broker. The event is kept while reports are buffered or the broker does
  /// not read. A broker that stops reading for a while may lose old reports, but never the
  /// connection.
  void report(const events::Event& event, TimePoint at);

  /// Keeps reports, as many as a ReportQueue holds, until `flush_reports` sends them.
  void buffer_reports();
  void flush_reports();

 private:
  BrokerLink(boost::asio::io_context& io, std::string path, Handlers handlers)
      : io_(&io), path_(std::move(path)), handlers_(std::move(handlers)), usage_retry_(io) {}
  std::shared_ptr<control::Peer> make_peer(control::Socket socket);
  bool broker_reads() const;
  void send_waiting();
  void send_usage_records();
  void usage_records_answered(const Result<control::Payload>& reply);
  bool is_reporting_usage() const;
  void check_usage_reported();

  boost::asio::io_context* io_;
  std::string path_;
  Handlers handlers_;
  std::shared_ptr<control::Peer> peer_;
  // number of the current connection; the end of an earlier one may arrive late
  int connections_ = 0;
  bool buffering_ = false;
  ReportQueue buffered_;
  std::map<TenantId, wire::TenantUsage> usage_;    ///< Not sent yet.
  std::map<TenantId, wire::TenantServed> served_;  ///< Not sent yet.
  UsageQueue usage_records_;
  boost::asio::steady_timer usage_retry_;
  bool usage_refused_ = false;  ///< The broker could not write the last report.
  std::move_only_function<void()> when_usage_reported_;
};

}  // namespace leasehold
