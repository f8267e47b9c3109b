/// Runs one request of one tenant under as many leases as it needs.
///
///   Idle ─start─► Acquiring ─granted─► Connecting ─accepted─► Streaming ─completed─► Releasing
///                    ▲                     │                     │                      │
///                    └──── Rebinding ◄─────┴─── lease over ──────┘                    Done
///
/// retry_decision.hpp decides what happens when a stream ends or a call fails; this class executes
/// the decision. A rebind submits the prompt and the delivered tokens under a new lease with the
/// same request id, so the stream has no gap and no repetition; TokenLedger checks that.
///
/// Shortly before the end of a lease's lifetime, and when an operator drains the lease, the session
/// requests a second lease and moves the request there (`lease.replace`, `request.move`); the
/// stream continues meanwhile. If the move has not succeeded when the first lease ends, the session
/// rebinds as above.
///
/// When an operator replaces the worker, the session requests a lease on the new worker
/// (`lease.replace`, mode failover). The broker ends the old lease and hands its memory over before
/// it replies; the session then submits the request there, as for a rebind.
///
/// A session acquires a lease of its own and releases it at the end, or uses the one that the
/// caller provides (`SessionConfig::lease`). If the provided lease is live, the session runs under
/// it.
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

#include "ipc/client/lease_history.hpp"
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
  /// The model for new texts; none: the model that every ready worker serves.
  std::optional<ModelName> model = std::nullopt;
  /// Identity of the text that `request.emitted` is a part of; none: not known.
  std::optional<TextIdentity> text_identity = std::nullopt;
  /// Lets any user act for the tenant; none: the policy must permit this process's user.
  std::optional<std::string> api_key = std::nullopt;
  std::uint32_t blocks = 0;  ///< KV blocks; 0: the blocks of one extent.
  bool scavenger = false;    ///< See LeaseAcquire.
  bool rebind = false;       ///< Continue under a new lease when one is revoked.
  /// Lets a text continue on a worker with another arithmetic, whose tokens may differ.
  bool any_arithmetic = false;
  /// With `rebind`: move the request to a second lease before the first one ends, where possible.
  bool moves = true;
  RetryPolicy retry;
  /// A lease at this broker for this tenant, which no other session uses until `Ended`; null: the
  /// session acquires a lease of its own.
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

  ~TenantSession();
  /// Does not connect yet.
  static std::shared_ptr<TenantSession> create(boost::asio::io_context& io, Timers& timers,
                                               SessionConfig config, Observer observer);

  /// Begins to acquire a lease. Call once.
  void start();

  /// Cancels the request at the worker, waits up to two seconds for its end, and releases the
  /// lease. `Ended` then has the reason "Cancelled" and no error. May be called at any time
  /// after start().
  void cancel();

  /// Ends the session as cancel() does, but leaves a resumable request at its worker, which keeps
  /// the request's text for a while. The request needs a lease that outlives the session
  /// (`SessionConfig::lease`).
  void leave();

  State state() const { return state_; }
  /// The ids of all tokens delivered so far.
  const std::vector<std::int32_t>& tokens() const { return ledger_.tokens(); }

 private:
  class LeaseReplacement;

  TenantSession(boost::asio::io_context& io, Timers& timers, SessionConfig config,
                Observer observer);
  bool is_over() const { return state_ == State::Releasing || state_ == State::Done; }
  /// Makes a handler that calls `action(*this, argument)`, unless the session is over by then.
  template <class Action>
  auto unless_over(Action action) {
    return [weak = weak_from_this(), action](auto&& argument) {
      const auto self = weak.lock();
      if (self && !self->is_over()) action(*self, std::forward<decltype(argument)>(argument));
    };
  }
  /// The lease granted last. Precondition: there is one.
  const wire::LeaseAcquired& held() const { return *holder_->lease(); }
  void acquire();
  void acquired(const Result<wire::LeaseAcquired>& result);
  void granted(const wire::LeaseAcquired& lease, std::uint32_t adopted_blocks);
  void lease_revoked(const wire::LeaseRevoked& revoked);
  void submit();
  void accepted(const wire::RequestSubmitted& generating);
  Duration accepted_under_held(std::string other_arithmetic);
  void take(wire::TokenEmitted token);
  void take(wire::PromptLogprobs logprobs);
  void completed(wire::RequestCompleted completed);
  void submit_again_after_earlier(const Error& error);
  /// True once everything has arrived, even if the completion has not. A request that asks for
  /// nothing is whole only with its completion.
  bool is_whole() const {
    const wire::RequestSubmit& asked = config_.request;
    if (asked.max_emitted_tokens == 0 && !asked.prompt_logprobs) return false;
    return ledger_.size() >= config_.request.max_emitted_tokens && ledger_.has_whole_prompt();
  }
  Error with_lost_worker_as_lease_end(const Error& error);
  void failed(const Error& error, Stage stage);
  RetryContext retry_context() const;
  /// Whether the observer already got an event about the end of the lease.
  enum class Reported { NotYet, Already };
  void act(const RetryDecision& decision, const Error& error, Reported reported);
  void schedule_retry(const Retry& again, const Error& error, Reported reported);
  void retry(bool fresh_lease, std::optional<LeaseId> ended);
  void finish(Ended ended);
  SessionLease::Handlers lease_handlers();
  WorkerStream::Handlers stream_handlers();

  boost::asio::io_context& io_;
  Timers& timers_;
  SessionConfig config_;
  Observer observer_;
  State state_ = State::Idle;
  std::shared_ptr<SessionLease> holder_;
  std::shared_ptr<WorkerStream> stream_;
  TokenLedger ledger_;
  LeaseHistory leases_;
  std::unique_ptr<LeaseReplacement> replacement_;
  TextContinuity continuity_;
  /// Resume if the connection broke to a worker that keeps the text.
  WorkerStream::Begin begin_ = WorkerStream::Begin::Submit;
  RetryCounts retry_counts_;
  bool cancelled_ = false;
  Timer timer_;  ///< Until the next attempt, or until a cancelled request is given up.
};

}  // namespace leasehold::client
