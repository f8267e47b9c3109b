/// A worker's standing with its broker: attached, away for a while and back again, or lost for
/// good.
///
/// While the broker is away the leases go on under the words this process sees and the deadlines it
/// holds. A broker that was started again with the table kept is told what is still mapped
/// (lease.redeliver), then that the worker serves (worker.ready); streams notice nothing.
///
/// Threads: `open` and `announce_ready` on the thread that starts the worker, `is_away` and
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
    std::function<void(bool away)> on_connection_changed;  ///< Gone, or back.
    std::function<void(const Error&)> on_refused;          ///< There is no way back.
  };
  struct Config {
    std::string broker_socket;
    std::string worker_name;
    Duration patience{};  ///< How long a worker waits for a broker to come back.
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
  const std::atomic<bool>& is_away() const { return away_; }

 private:
  BrokerSession(boost::asio::io_context& io, const Clock& clock, Config config, Handlers handlers)
      : clock_(&clock),
        config_(std::move(config)),
        handlers_(std::move(handlers)),
        path_(config_.patience),
        timer_(io) {}
  void lost(const Error& why);
  void go_on();
  void wait();
  void try_to_return();
  void ask_to_resume();
  void deliver();
  void report_ready();
  void settled();
  void failed(const Error& why);
  template <class Message>
  void ask(const Message& message, std::vector<UniqueFd> fds,
           std::move_only_function<void(const control::Json&)> then);

  const Clock* clock_;
  Config config_;
  Handlers handlers_;
  ReconnectState path_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<BrokerLink> link_;
  std::optional<Attachment> attachment_;
  std::atomic<LeaseService*> leases_ = nullptr;  // from worker.ready on; `ready_` is older
  wire::WorkerReady ready_;
  std::size_t unanswered_ = 0;  // deliveries
  int attempt_ = 0;             // answers to an earlier one do not count
  std::atomic<bool> away_{false};
  std::atomic<bool> lost_{false};
};

}  // namespace leasehold
