/// A worker's session with its broker: attached, disconnected and resumed, or lost.
///
/// While the broker is disconnected, the lease words and deadlines that this process reads in the
/// table continue to govern the leases. After a reconnect the session redelivers the mapped memory
/// (lease.redeliver) and then sends worker.ready; streams are not interrupted.
///
/// Threads: `open` and `announce_ready` on the thread that starts the worker; `is_disconnected` and
/// `is_lost` on any; the rest and the handlers on the I/O thread. Lifetime: the io_context stops
/// before the session is destroyed.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>

#include "worker/lease/attachment.hpp"
#include "worker/lease/lease_service.hpp"
#include "worker/lease/reconnect_state.hpp"

namespace leasehold {

class BrokerSession {
 public:
  struct Handlers {
    std::function<void(const std::string& method, control::Payload, control::Responder)> on_call;
    /// The connection was lost or resumed.
    std::function<void(bool disconnected)> on_connection_changed;
    std::function<void(const Error&)> on_broker_lost;  ///< The broker is lost for good.
  };
  struct Config {
    std::string broker_socket;
    std::string worker_name;
    Duration timeout{};  ///< Limit on the time to connect and to reconnect.
  };

  /// Waits up to the timeout for a broker to listen, and attaches. Errors: BrokerLost when none
  /// listens in time; otherwise those of control::connect_to and attach_worker.
  static Result<std::unique_ptr<BrokerSession>> open(boost::asio::io_context& io,
                                                     const Clock& clock, Config config,
                                                     Handlers handlers);

  BrokerLink& link() { return *link_; }
  const Attachment& attachment() const { return *attachment_; }

  /// Sends `worker.ready`; from now on the session reconnects after a loss. `leases` provides the
  /// mapped memory to redeliver. Errors: the broker's answer, TimedOut, ConnectionLost.
  Result<wire::ExtentShape> announce_ready(const wire::WorkerReady& ready, LeaseService& leases);

  bool is_lost() const { return lost_; }
  const std::atomic<bool>& is_disconnected() const { return disconnected_; }

 private:
  BrokerSession(boost::asio::io_context& io, const Clock& clock, Config config, Handlers handlers)
      : clock_(&clock),
        config_(std::move(config)),
        handlers_(std::move(handlers)),
        reconnect_(config_.timeout),
        timer_(io) {}
  Result<std::unique_ptr<BrokerLink>> await_broker(boost::asio::io_context& io);
  void connection_lost(const Error& why);
  void advance(const Error& why);
  void schedule_reconnect();
  void try_reconnect();
  void request_resume();
  void redeliver();
  void report_ready();
  void reattached();
  void resume_failed(const Error& why);
  template <class Message>
  void call(const Message& message, std::vector<UniqueFd> fds,
            std::move_only_function<void(const control::Json&)> then);

  const Clock* clock_;
  Config config_;
  Handlers handlers_;
  ReconnectState reconnect_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<BrokerLink> link_;
  std::optional<Attachment> attachment_;
  std::atomic<LeaseService*> leases_ = nullptr;  // set after `ready_`, by `announce_ready`
  wire::WorkerReady ready_;
  std::size_t pending_replies_ = 0;  // replies to redeliveries
  int attempt_ = 0;                  // replies to an earlier attempt are ignored
  std::atomic<bool> disconnected_{false};
  std::atomic<bool> lost_{false};
};

}  // namespace leasehold
