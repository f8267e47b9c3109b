/// The broker's side of a tenant: acquires one lease at a time, keeps it alive, gives it back.
///
/// The connection stays open as long as the object: to the broker it is the holder's life line.
/// When the broker goes away it is looked for until the lease is over; one that was started again
/// is reported who the holder is (`lease.hold`), and renewing goes on. A call for a lease that was
/// under way is made again under the same request id, so that it is granted once.
///
/// Lifetime: shared; `io` and `timers` outlive it. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"
#include "tools/client/timers.hpp"

namespace leasehold::tenant {

class LeaseHolder : public std::enable_shared_from_this<LeaseHolder> {
 public:
  using AcquireHandler = std::move_only_function<void(Result<wire::LeaseAcquired>)>;
  /// Called when the connection goes while a lease is held; BrokerLost.
  using LostHandler = std::function<void(const Error&)>;

  static std::shared_ptr<LeaseHolder> create(boost::asio::io_context& io, Timers& timers,
                                             std::string broker_path, LostHandler on_lost);

  /// Connects if need be and acquires. The lease held before, if any, is no longer renewed, and is
  /// released once its successor is there. One acquisition at a time.
  /// Errors: the broker's own, those of connect_to, ConnectionLost, TimedOut.
  void acquire(const wire::LeaseAcquire& wanted, AcquireHandler done);

  /// The lease is over: stop renewing it. Nothing when none is held.
  void stop_renewing();

  /// Gives the lease back and closes. `done` is called once, at the latest when `timeout` is over.
  void release(Duration timeout, std::move_only_function<void()> done);

  const std::optional<wire::LeaseAcquired>& lease() const { return lease_; }

 private:
  LeaseHolder(boost::asio::io_context& io, Timers& timers, std::string path, LostHandler on_lost)
      : io_(io), timers_(timers), path_(std::move(path)), on_lost_(std::move(on_lost)) {}
  Result<void> connect();
  void disconnect();
  /// A call for a lease, from the first time it is made to its answer.
  struct PendingAcquire {
    wire::LeaseAcquire message;
    AcquireHandler done;
    int resends = 0;
  };
  void send_acquire();
  bool lost_lease_of_resend(Errc code) const;
  void granted(Result<control::Payload> reply);
  void take(const wire::LeaseAcquired& acquired);
  void resend();
  void broker_disconnected(const Error& why);
  void reconnect();
  void hold(std::move_only_function<void(Result<void>)> done);
  void lease_ended();
  void renew_later();
  void renew();
  void release_lease(LeaseId lease, control::Peer::ReplyHandler on_reply);

  boost::asio::io_context& io_;
  Timers& timers_;
  std::string path_;
  LostHandler on_lost_;
  std::shared_ptr<control::Peer> broker_;
  int connection_ = 0;  ///< Counts them: the end of an earlier one may be reported late.
  std::optional<PendingAcquire> pending_acquire_;
  std::optional<wire::LeaseAcquired> lease_;
  bool lease_is_live_ = false;  ///< As far as anybody reported; then it is worth coming back for.
  int reconnect_attempts_ = 0;  ///< For the broker, in a row.
  Timer renew_timer_;
  Timer reconnect_timer_;
  Timer release_timer_;
  std::move_only_function<void()> on_released_;
};

}  // namespace leasehold::tenant
