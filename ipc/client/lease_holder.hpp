/// Holds one lease for a tenant: acquires, renews, replaces and releases it at the broker.
///
/// The broker revokes the lease when its holder's connection closes, so the connection stays open
/// until release(). When the connection breaks while a lease is live, the holder reconnects until
/// the lease's deadline, sends `lease.hold` to identify itself to a restarted broker, and continues
/// to renew. An acquisition that was in flight is sent again with the same request id, so that the
/// broker grants only one lease.
///
/// Lifetime: shared; `io` and `timers` outlive it; no handler is called after it is destroyed.
/// Threads: only the thread that runs `io`. Errors: passed to the handlers.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ipc/client/session_lease.hpp"
#include "ipc/client/timers.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::client {

class LeaseHolder final : public SessionLease, public std::enable_shared_from_this<LeaseHolder> {
 public:
  enum class AtSessionEnd : std::uint8_t {
    Release,   ///< The lease serves one session.
    KeepLive,  ///< A live lease stays for the next session.
  };

  /// Does not connect yet. `broker_path` is the broker's control socket.
  static std::shared_ptr<LeaseHolder> create(boost::asio::io_context& io, Timers& timers,
                                             std::string broker_path, Handlers handlers,
                                             AtSessionEnd at_end = AtSessionEnd::Release);

  void set_handlers(Handlers handlers) override { handlers_ = std::move(handlers); }

  /// Connects if necessary. A lease held before is no longer renewed, and is released after the new
  /// one is granted.
  void acquire(const wire::LeaseAcquire& wanted, AcquireHandler done) override;

  void replace(wire::LeaseReplace wanted, AcquireHandler done) override;
  void release_previous() override;
  bool is_live() const override { return lease_is_live_ && broker_ != nullptr; }
  bool is_reconnecting() const override { return lease_is_live_ && broker_ == nullptr; }
  bool is_replacing() const override { return replacement_.done != nullptr; }

  void note_refused(Errc code) override {
    if (is_lease_ended(code)) stop_renewing();
  }

  void session_ended(Duration timeout, std::move_only_function<void()> done) override;

  /// Releases the lease and closes the connection. Calls `done` once, at the latest after
  /// `timeout`, even when the broker does not reply. Drops an acquisition in flight.
  void release(Duration timeout, std::move_only_function<void()> done);

  const std::optional<wire::LeaseAcquired>& lease() const override { return lease_; }

 private:
  LeaseHolder(boost::asio::io_context& io, Timers& timers, std::string path, Handlers handlers,
              AtSessionEnd at_end)
      : io_(io),
        timers_(timers),
        path_(std::move(path)),
        handlers_(std::move(handlers)),
        at_session_end_(at_end) {}
  Result<void> connect();
  void disconnect();
  /// Stops the renewal of a lease that has ended. Does nothing without a lease.
  void stop_renewing();
  /// An acquisition from its first send to its reply.
  struct PendingAcquire {
    wire::LeaseAcquire message;
    AcquireHandler done;
    int resends = 0;
  };
  struct PendingReplace {
    AcquireHandler done;  ///< Null if no replacement is in flight.
    int number = 0;       ///< Of the latest replacement; identifies late replies.
  };
  struct PendingRelease {
    std::move_only_function<void()> done;  ///< Null if the lease is not being released.
    Timer timer;
  };
  struct Reconnect {
    int attempts = 0;  ///< In a row.
    Timer timer;       ///< Until the next attempt, or until an acquisition is sent again.
  };
  void send_acquire();
  bool lost_lease_of_resend(Errc code) const;
  void granted(Result<control::Payload> reply);
  void take(const wire::LeaseAcquired& acquired);
  void resend();
  void replaced(const wire::LeaseAcquired& acquired);
  void take_notification(const std::string& method, const control::Json& body);
  void broker_disconnected(const Error& why);
  void reconnect();
  void hold(std::move_only_function<void(Result<void>)> done);
  void renew_later();
  void renew();
  void release_lease(LeaseId lease, control::Peer::ReplyHandler on_reply);

  boost::asio::io_context& io_;
  Timers& timers_;
  std::string path_;
  Handlers handlers_;
  const AtSessionEnd at_session_end_;
  std::shared_ptr<control::Peer> broker_;
  /// Number of the connection; identifies a late notice about an earlier one.
  int connection_ = 0;
  std::optional<PendingAcquire> pending_acquire_;
  std::optional<wire::LeaseAcquired> lease_;
  bool lease_is_live_ = false;       ///< The holder knows of no end of the lease, so it reconnects.
  std::optional<LeaseId> previous_;  ///< The lease that lease_ replaced, until it is released.
  PendingReplace replacement_;
  Timer renew_timer_;
  Reconnect reconnect_;
  PendingRelease release_;
};

}  // namespace leasehold::client
