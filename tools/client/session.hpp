/// One request of one tenant, over as many leases as it takes.
///
///   Idle ─start─► Acquiring ─granted─► Connecting ─accepted─► Streaming ─completed─► Releasing
///                    ▲                     │                     │                      │
///                    └──── Rebinding ◄─────┴─── lease over ──────┘                    Done
///
/// What to do when something ends is decided in retry_decision.hpp; here it is only done. A rebind
/// submits the prompt and the tokens already delivered under a fresh lease with the same request
/// id, so the stream has no gap and no repetition; TokenLedger checks that.
///
/// Lifetime: shared; alive while an operation is pending; `io` and `timers` outlive it.
/// Threads: the one that runs `io`. Errors: reported once, as `Ended`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/client/lease_holder.hpp"
#include "tools/client/retry_decision.hpp"
#include "tools/client/session_event.hpp"
#include "tools/client/token_ledger.hpp"
#include "tools/client/worker_stream.hpp"

namespace leasehold::tenant {

struct SessionConfig {
  std::string broker_path;
  TenantId tenant;
  std::optional<std::string> worker;  ///< By name; none: any that is ready.
  std::uint32_t blocks = 0;           ///< 0: one extent's worth.
  bool rebind = false;
  RetryPolicy retry;
  /// `token`, `emitted` and `rebound_from` are the session's to fill.
  wire::Generate request;
};

class TenantSession : public std::enable_shared_from_this<TenantSession> {
 public:
  enum class State { Idle, Acquiring, Connecting, Streaming, Rebinding, Releasing, Done };
  using Observer = std::function<void(const SessionEvent&)>;

  static std::shared_ptr<TenantSession> create(boost::asio::io_context& io, Timers& timers,
                                               SessionConfig config, Observer observer);

  /// Once.
  void start();

  /// Ends the request as soon as the worker says so, at the latest after two seconds; then gives
  /// the lease back. May be called at any time.
  void cancel();

  State state() const { return state_; }
  const std::vector<std::int32_t>& tokens() const { return ledger_.tokens(); }

 private:
  TenantSession(boost::asio::io_context& io, Timers& timers, SessionConfig config,
                Observer observer);
  bool is_over() const { return state_ == State::Releasing || state_ == State::Done; }
  void acquire();
  void acquired(Result<wire::LeaseAcquired> result);
  void submit();
  void accepted(const wire::Generating& generating);
  void take(const wire::TokenEmitted& token);
  void completed(wire::RequestCompleted completed);
  void failed(const Error& error, Stage stage);
  RetryContext retry_context() const;
  /// Whether the observer knows that a lease is over before it hears what is done about it.
  enum class Reported { NotYet, Already };
  void act(const RetryDecision& decision, const Error& error, Reported reported);
  void schedule_retry(const Retry& again, const Error& error, Reported reported);
  void finish(Ended ended);
  WorkerStream::Handlers stream_handlers();

  boost::asio::io_context& io_;
  Timers& timers_;
  SessionConfig config_;
  Observer observer_;
  State state_ = State::Idle;
  std::shared_ptr<LeaseHolder> holder_;
  std::shared_ptr<WorkerStream> stream_;
  TokenLedger ledger_;
  std::optional<LeaseId> last_lease_;      ///< The one held last.
  std::optional<LeaseId> replaceable_;     ///< The same, as long as the broker knows it.
  std::optional<LeaseId> streamed_under_;  ///< The one a worker last accepted the request under.
  int failures_ = 0;                       ///< In a row, without a token.
  bool cancelled_ = false;
  Timer retry_timer_;
  Timer cancel_timer_;
};

}  // namespace leasehold::tenant
