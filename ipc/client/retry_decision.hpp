/// Decides what a session does when a stream ends or a call fails. Pure: no socket, no clock.
///
/// A failure of shared scope ends the published text that the stream read: the session submits
/// again at once, under the lease that it holds. A failure of tenant scope may cost the lease. A
/// failure of engine scope that passes (WeightsLoading, EngineLeaseFenced, EngineDecodeFailed,
/// BrokerLost) does not: the session submits again under the same lease after the back-off. The
/// worker refuses a rebind with EngineLeaseFenced at most once, and the second submission waits in
/// the worker's queue; the worker ends that wait with tokens, with WeightsLoading, or with
/// MissingWeight. After MissingWeight of a worker the session acquires a lease on another one; from
/// the broker, which has none, it is final.
///
/// A rebind that finds no memory, or whose tenant's other leases hold its quota, waits as long as
/// its refusals say when to ask again, at most RetryPolicy::rebind_timeout.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::client {

/// Limits on retries.
struct RetryPolicy {
  int max_attempts = 8;  ///< In a row, without a token.
  Duration first_delay = std::chrono::milliseconds(50);
  Duration max_delay = std::chrono::seconds(2);
  /// How long a text that has begun may wait for its next lease, also where each refusal says when
  /// to ask again.
  Duration rebind_timeout = std::chrono::minutes(10);
  /// Progress, after which the delay is first_delay again: this number of tokens of a stream, or a
  /// token so long after the worker accepted the request.
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
  bool names_worker = false;  ///< The caller wants this worker and no other.
  int failures = 0;           ///< In a row, since the last token or the start.
  int setbacks = 0;           ///< In a row, since the last progress or the start.
  Duration waited{};          ///< Since the stream was interrupted.
};

struct Retry {
  Duration delay{};
  bool fresh_lease = true;  ///< False: submit again under the lease still held.
};
/// The error ends the session.
using RetryDecision = Result<Retry>;

/// The error that a completion means; nothing for a normal end. An unknown reason is
/// MalformedMessage.
std::optional<Error> error_of(const wire::RequestCompleted& completed);

/// Decides after the worker ended a stream with this error of its completion. Retries need
/// `rebind`; a lease that is revoked after progress is replaced without delay.
RetryDecision after_completed(const Error& error, const RetryContext& retry_context,
                              const RetryPolicy& policy);

/// Decides after a call or a connection to `stage` failed with `error`.
RetryDecision after_failure(const Error& error, Stage stage, const RetryContext& retry_context,
                            const RetryPolicy& policy);

}  // namespace leasehold::client
