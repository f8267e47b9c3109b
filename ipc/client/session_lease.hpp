/// The lease under which a session's request runs. A LeaseHolder serves one session, or several one
/// after the other; the worker's HTTP server gives each session a share of its API key's lease.
///
/// Threads: only the thread that runs the session. Errors: passed to the handlers.
#pragma once

#include <functional>
#include <optional>

#include "common/clock.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::client {

class SessionLease {
 public:
  using AcquireHandler = std::move_only_function<void(Result<wire::LeaseAcquired>)>;
  /// Those of a LeaseHolder may be null.
  struct Handlers {
    /// Called with BrokerLost when the connection breaks while a lease is held. May be called once
    /// per connection; it is connected again without the session.
    std::function<void(const Error&)> on_lost = nullptr;
    /// The broker revoked the lease, which is no longer renewed. Not called within acquire().
    std::function<void(const wire::LeaseRevoked&)> on_revoked = nullptr;
    /// An operator drains the lease, or replaces its worker. It is still renewed.
    std::function<void(const wire::LeaseDraining&)> on_draining = nullptr;
  };
  virtual ~SessionLease() = default;

  /// Replaces the handlers. A session does so when it is created, before it acquires.
  virtual void set_handlers(Handlers handlers) = 0;

  /// Acquires a lease in place of the one that was held, if any, which the session no longer uses;
  /// calls `done` once, perhaps from within this call. At most one acquisition at a time.
  /// Errors: the broker's refusal; FileNotFound, ConnectionRefused, PermissionDenied from the
  /// connection; ConnectionLost after 20 resends; TimedOut after 30 s; MalformedMessage.
  virtual void acquire(const wire::LeaseAcquire& wanted, AcquireHandler done) = 0;

  /// Asks for a second lease in place of the one that is held and live; calls `done` once, perhaps
  /// from within this call. After a grant lease() is the new one, and the old one is neither
  /// renewed nor released: call release_previous() once the session's request has left it. After an
  /// error nothing has changed. An acquire() meanwhile drops the call. Precondition: is_live().
  /// The members `lease` and `request_id` of `wanted` are filled in here. With mode Failover the
  /// old lease may end before the reply, also before an error.
  /// Errors: the broker's refusal; ConnectionLost; TimedOut after 30 s; MalformedMessage.
  virtual void replace(wire::LeaseReplace wanted, AcquireHandler done) = 0;
  virtual void release_previous() = 0;
  /// True while no end of the lease is known and the broker is connected.
  virtual bool is_live() const = 0;
  /// The broker is away, and no end of the lease is known.
  virtual bool is_reconnecting() const = 0;
  /// A replacement is in flight, also after the lease that it replaces has ended.
  virtual bool is_replacing() const = 0;

  /// The worker ended or refused a request under the lease with this code of tenant scope. A lease
  /// that is over is no longer renewed.
  virtual void note_refused(Errc code) = 0;

  /// The session has ended and no longer uses the lease. Drops an acquisition in flight. Calls
  /// `done` once: if the lease is released, after the broker's reply or after `timeout`, whichever
  /// is first; otherwise from within this call. The session ignores handlers that are called later.
  virtual void session_ended(Duration timeout, std::move_only_function<void()> done) = 0;

  /// The lease granted last, live or over; nothing before the first grant.
  virtual const std::optional<wire::LeaseAcquired>& lease() const = 0;
};

}  // namespace leasehold::client
