/// Runs one request of one tenant, over as many leases as it needs.
///
///   Idle ─start─► Acquiring ─granted─► Connecting ─accepted─► Streaming ─completed─► Releasing
///                    ▲                     │                     │                      │
///                    └──── Rebinding ◄─────┴─── lease over ──────┘                    Done
///
/// retry_decision.hpp decides what happens when a stream ends or a call fails; this class carries
/// it out. A rebind submits the prompt and the delivered tokens under a new lease with the same
/// request id, so the stream has no gap and no repetition; TokenLedger checks that.
///
/// Shortly before the end of a lease's lifetime, and when an operator drains the lease, the session
/// asks for a second lease and moves the request there (`lease.replace`, `request.move`); the
/// stream goes on meanwhile. If that fails until the first lease ends, it rebinds as above.
///
/// When an operator replaces the worker, the session asks for a lease on the new one
/// (`lease.replace`, mode failover). The broker ends the old lease and hands its memory over before
/// it replies; the session then submits the request there, as for a rebind.
///
/// A session has a lease of its own, which it releases when it ends, or uses the one that the
/// caller gives it (`SessionConfig::lease`). If that one is live, the session runs under it.
///
/// Lifetime: shared; keep the pointer until `Ended`: a dropped session reports nothing more and
/// leaves its connections to `io`. `io` and `timers` outlive it.
/// Threads: only the thread that runs `io`; the observer is called there, too.
/// Errors: reported once, in `Ended`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ipc/client/retry_counts.hpp"
#include "ipc/client/retry_decision.hpp"
#include "ipc/client/session_event.hpp"
#include "ipc/client/session_lease.hpp"
#include "ipc/client/text_continuity.hpp"
#include "ipc/client/timers.hpp"
#include "ipc/client/token_ledger.hpp"
#include "ipc/client/worker_stream.hpp"

namespace leasehold::client {

struct SessionConfig {
  std::string broker_path;            ///< The broker's control socket.
  TenantId tenant;                    ///< Must be admitted at the broker.
  std::optional<std::string> worker;  ///< Name of the worker; none: any that is ready.
  /// What new texts are generated with; none: what every ready worker serves.
  std::optional<ModelName> model = std::nullopt;
  /// Of the text that `request.emitted` is a part of; none: not known.
  std::optional<TextIdentity> text_identity = std::nullopt;
  /// Lets any user act for the tenant; none: the policy must permit this process's user.
  std::optional<std::string> api_key = std::nullopt;
  std::uint32_t blocks = 0;  ///< KV blocks; 0: one extent's worth.
  bool rebind = false;       ///< Continue under a new lease when one is revoked.
  /// Continue a text also on a worker of another arithmetic, whose tokens may differ.
  bool any_arithmetic = false;
  /// With `rebind`: move the request to a second lease before the first one ends, where possible.
  bool moves = true;
  RetryPolicy retry;
  /// Of this broker and tenant, and of no other session until `Ended`; null: the session has a
  /// lease of its own.
  std::shared_ptr<SessionLease> lease = nullptr;
  /// The session fills in `token` and `rebound_from`, and appends to `emitted`: tokens that an
  /// earlier process received, which are not delivered again.
  wire::RequestSubmit request;
};

class TenantSession : public std::enable_shared_from_this<TenantSession> {
 public:
  enum class State { Idle, Acquiring, Connecting, Streaming, Rebinding, Releasing, Done };
  /// Called for every event, in order; `Ended` is the last. The observer must not call start(),
  /// cancel() or leave().
  using Observer = std::function<void(SessionEvent)>;

  /// Does not connect yet.
  static std::shared_ptr<TenantSession> create(boost::asio::io_context& io, Timers& timers,
                                               SessionConfig config, Observer observer);

  /// Begins to acquire a lease. Call once.
  void start();

  /// Cancels the request at the worker, waits up to two seconds for its end, and releases the
  /// lease. `Ended` then has the reason "Cancelled" and no error. May be called at any time
  /// after start().
  void cancel();

  /// Ends the session as cancel() does, and leaves a resumable request at its worker, which keeps
  /// its text for a while. The request needs a lease that outlives the session
  /// (`SessionConfig::lease`).
  void leave();

  State state() const { return state_; }
  /// The ids of all tokens delivered so far.
  const std::vector<std::int32_t>& tokens() const { return ledger_.tokens(); }

 private:
  TenantSession(boost::asio::io_context& io, Timers& timers, SessionConfig config,
                Observer observer);
  bool is_over() const { return state_ == State::Releasing || state_ == State::Done; }
  void acquire();
  void acquired(Result<wire::LeaseAcquired> result);
  SessionLease::Handlers lease_handlers();
  void lease_revoked(const wire::LeaseRevoked& revoked);
  void submit();
  void accepted(const wire::RequestSubmitted& generating);
  void take(wire::TokenEmitted token);
  void completed(wire::RequestCompleted completed);
  void submit_again_after_earlier(const Error& error);
  void lease_draining(const wire::LeaseDraining& notice);
  void plan_replacement();
  void replace(wire::RebindMode mode);
  void replaced(wire::RebindMode mode, const Result<wire::LeaseAcquired>& result);
  void move(wire::RebindMode mode);
  void moved(wire::RebindMode mode, const Result<void>& result);
  bool may_replace() const;
  /// Every token has arrived; the end may not have.
  bool is_whole() const { return ledger_.size() >= config_.request.max_emitted_tokens; }
  void failed_over(const wire::LeaseAcquired& acquired);
  bool ends_in_failover(Stage stage, std::move_only_function<void()> otherwise);
  Error seen_from_lease(const Error& error);
  void failed(const Error& error, Stage stage);
  RetryContext retry_context() const;
  /// Whether the observer already got an event about the end of the lease.
  enum class Reported { NotYet, Already };
  void act(const RetryDecision& decision, const Error& error, Reported reported);
  void schedule_retry(const Retry& again, const Error& error, Reported reported);
  void retry(bool fresh_lease, std::optional<LeaseId> ended);
  void finish(Ended ended);
  WorkerStream::Handlers stream_handlers();

  boost::asio::io_context& io_;
  Timers& timers_;
  SessionConfig config_;
  Observer observer_;
  State state_ = State::Idle;
  std::shared_ptr<SessionLease> holder_;
  std::shared_ptr<WorkerStream> stream_;
  TokenLedger ledger_;
  std::optional<LeaseId> last_lease_;  ///< Granted last.
  /// What the next acquire replaces: `last_lease_`, or after the loss of a worker the lease that
  /// has the text. Nothing if the broker does not know it.
  std::optional<LeaseId> replaceable_;
  std::optional<LeaseId> streamed_under_;  ///< A worker last accepted the request under this one.
  std::optional<LeaseId> ended_text_;      ///< Its text was read, and it ended the stream.
  bool refused_unused_token_ = false;      ///< Since a worker last accepted the request.
  TextContinuity continuity_;
  /// Resume after the connection to a worker that keeps the text broke.
  WorkerStream::Begin begin_ = WorkerStream::Begin::Submit;
  RetryCounts retry_counts_;
  bool cancelled_ = false;
  /// When the rebind in progress began: a stream ended, or a replacement was asked for.
  std::optional<TimePoint> rebind_began_;
  Duration last_move_{};    ///< What the last one took.
  bool is_moving_ = false;  ///< Since the replacement was asked for.
  /// The lease ended, and the session continues once its replacement in flight is answered.
  bool awaits_replacement_ = false;
  std::optional<LeaseId> leaving_;  ///< The lease whose worker is being replaced.
  bool is_failing_over_ = false;    ///< `is_moving_`, to another worker.
  /// The stream ended in a failover: what to do if that fails.
  std::move_only_function<void()> on_failover_refused_;
  wire::RebindMode rebind_mode_ = wire::RebindMode::Reprefill;  ///< Mode of the next submission.
  Timer replacement_timer_;
  Timer retry_timer_;
  Timer cancel_timer_;
};

}  // namespace leasehold::client
