/// A worker's standing with its broker: attached, away for a while and back again, or lost for
/// good.
///
/// While the broker is away the leases go on under the words this process sees and the deadlines it
/// holds. A broker that was started again with the table kept is told what is still mapped
/// (lease.redeliver), then that the worker serves (worker.ready); streams notice nothing.
///
/// Threads: `open` and `announce_ready` on the thread that starts the worker, `is_disconnected` and
/// `is_lost` on any, the rest and the handlers on the I/O thread. Lifetime: the io_context has
/// stopped before the session goes.
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
    std::function<void(bool disconnected)> on_connection_changed;  ///< Gone, or back.
    std::function<void(const Error&)> on_broker_lost;              ///< There is no way back.
  };
  struct Config {
    std::string broker_socket;
    std::string worker_name;
    Duration timeout{};  ///< How long a worker waits for a broker to come back.
  };

  /// Connects and attaches. Errors: those of control::connect_to and attach_worker.
  static Result<std::unique_ptr<BrokerSession>> open(boost::asio::io_context& io,
                                                     const Clock& clock, Config config,
                                                     Handlers handlers);

  BrokerLink& link() { return *link_; }
  const Attachment& attachment() const { return *attachment_; }

  /// Says `worker.ready`; from now on a lost broker is waited for. `leases` knows what is mapped.
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
  void connection_lost(const Error& why);
  void advance();
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
  std::atomic<LeaseService*> leases_ = nullptr;  // from worker.ready on; `ready_` is older
  wire::WorkerReady ready_;
  std::size_t pending_replies_ = 0;  // redeliveries
  int attempt_ = 0;                  // answers to an earlier one do not count
  std::atomic<bool> disconnected_{false};
  std::atomic<bool> lost_{false};
};

}  // namespace leasehold
