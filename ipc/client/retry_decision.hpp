/// Decides what a session does when a stream ends or a call fails. Pure: no socket, no clock.
///
/// A failure of shared scope ends the published text that the stream read, and one of adapter scope
/// its adapter's memory: the session submits again at once, under the lease that it holds. With an
/// adapter it does so once in a row. An adapter that cannot be loaded is final. A failure of tenant
/// scope may cost the lease. A failure of engine scope that passes (WeightsLoading,
/// EngineLeaseFenced, EngineDecodeFailed, BrokerLost) does not: the session submits again under the
/// same lease after the back-off. The worker refuses a rebind with EngineLeaseFenced at most once,
/// and the second submission waits in the worker's queue; the worker ends that wait with tokens,
/// with WeightsLoading, or with MissingWeight. After MissingWeight from a worker the session
/// acquires a lease on another worker. MissingWeight from the broker means that no worker has the
/// weights, so the error is final.
///
/// A rebind for which there is no memory, or whose tenant has used up its quota with other leases,
/// retries when the refusals say, for at most RetryPolicy::rebind_timeout.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::client {

/// Limits on retries.
struct RetryPolicy {
  int max_attempts = 8;  ///< Attempts in a row without a token.
  Duration first_delay = std::chrono::milliseconds(50);
  Duration max_delay = std::chrono::seconds(2);
  /// How long a text that has begun may wait for its next lease, even if each refusal says when to
  /// retry.
  Duration rebind_timeout = std::chrono::minutes(10);
  /// A stream has made progress, which resets the delay to first_delay, after this many tokens, or
  /// with a token that arrives `progress_time` after the worker accepted the request.
  std::uint32_t progress_tokens = 16;
  Duration progress_time = std::chrono::seconds(5);
};

/// first_delay · 2^setbacks, at most max_delay.
Duration backoff(const RetryPolicy& policy, int setbacks);

/// The process that the failed call went to.
enum class Stage { Broker, Worker };

struct RetryContext {
  bool rebind = false;        ///< The caller wants the stream to continue under other leases.
  bool had_lease = false;     ///< A lease was granted before, so the broker address was right.
  bool names_worker = false;  ///< The caller accepts only one worker.
  int failures = 0;           ///< Failures since the last token or the start.
  int setbacks = 0;           ///< Setbacks since the last progress or the start.
  Duration waited{};          ///< Time since the stream was interrupted.
};

struct Retry {
  Duration delay{};
  bool fresh_lease = true;  ///< False: submit again under the lease still held.
};
/// How to retry, or the error with which the session ends.
using RetryDecision = Result<Retry>;

/// The error that a completion reports; nothing for a normal end. An unknown reason is
/// MalformedMessage.
std::optional<Error> error_of(const wire::RequestCompleted& completed);

/// Decides after the worker ended a stream with a completion that reports `error`. Retries need
/// `rebind`; a lease that is revoked after progress is replaced without delay.
RetryDecision after_completed(const Error& error, const RetryContext& retry_context,
                              const RetryPolicy& policy);

/// Decides after a call or a connection to `stage` failed with `error`.
RetryDecision after_failure(const Error& error, Stage stage, const RetryContext& retry_context,
                            const RetryPolicy& policy);

}  // namespace leasehold::client
