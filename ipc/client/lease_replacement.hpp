/// The part of a session that replaces its lease while the request runs: by a second lease on the
/// same worker, to which the request moves, or by one on another worker (failover). Internal to
/// the session.
///
/// Lifetime: that of the session. Threads: the session's.
#pragma once

#include "ipc/client/session.hpp"

namespace leasehold::client {

class TenantSession::LeaseReplacement {
 public:
  explicit LeaseReplacement(TenantSession& session) : session_(session) {}

  /// An operator drains the lease, or replaces its worker.
  void draining(const wire::LeaseDraining& notice);
  /// A worker accepted the request under the held lease: plans the replacement of that lease.
  void plan();
  /// True from the request for a lease on another worker to the reply.
  bool is_failing_over() const { return is_failing_over_; }
  /// In a failover the old lease, and with it the stream, ends before the broker replies. This
  /// defers the end of the stream until the reply: if the broker refuses the lease on another
  /// worker, `otherwise` is called. Returns false if no failover is in progress.
  bool takes_end(Stage stage, std::move_only_function<void()> otherwise);
  /// Call it when the stream has ended: the request is not moved any more.
  void stop();
  /// Lets the session continue with the lease of a replacement in flight, because that lease counts
  /// against the quota and another one may not fit beside it. Returns false if none is in flight.
  bool await_reply();

 private:
  bool may_replace() const;
  void replace(wire::RebindMode mode);
  void replace_later(Duration delay, wire::RebindMode mode);
  void replaced(wire::RebindMode mode, const Result<wire::LeaseAcquired>& result);
  void refused(wire::RebindMode mode, const Error& error, bool was_failing_over);
  void failed_over(const wire::LeaseAcquired& acquired);
  void move(wire::RebindMode mode);
  void moved(wire::RebindMode mode, const Result<void>& result);

  TenantSession& session_;
  Timer timer_;
  Duration last_move_{};    ///< Duration of the last move.
  bool is_moving_ = false;  ///< True from the request for a second lease to the end of the move.
  /// The same as `is_moving_` for a move to another worker.
  bool is_failing_over_ = false;
  /// The lease ended, and the session continues when the broker answers the replacement in flight.
  bool is_awaited_ = false;
  std::optional<LeaseId> leaving_;  ///< The lease whose worker is being replaced.
  /// The stream ended during a failover: called if the failover is refused.
  std::move_only_function<void()> on_failover_refused_;
};

}  // namespace leasehold::client
