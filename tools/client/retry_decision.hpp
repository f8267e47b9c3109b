/// What a tenant does about each thing that can end a stream. Pure: no socket, no clock.
#pragma once

#include <variant>

#include "common/clock.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::tenant {

/// How long to go on without getting a single token further.
struct RetryPolicy {
  int max_attempts = 8;
  Duration first_delay = std::chrono::milliseconds(50);
  Duration max_delay = std::chrono::seconds(2);
};

/// first_delay · 2^failures, at most max_delay.
Duration backoff(const RetryPolicy& policy, int failures);

/// Whom the failing call went to.
enum class Stage { Broker, Worker };

struct RetryContext {
  bool rebind = false;     ///< The caller wants the stream kept alive across leases.
  bool had_lease = false;  ///< A lease was granted before; the broker was there then.
  int failures = 0;        ///< In a row, since the last token or the start.
};

/// The request is answered.
struct Finish {};
struct GiveUp {
  Error error;
};
struct Retry {
  Duration delay{};
  bool fresh_lease = true;  ///< False: submit again under the lease still held.
};
using RetryDecision = std::variant<Finish, GiveUp, Retry>;

/// The error a completion stands for; nothing when it is an answer.
std::optional<Error> error_of(const wire::RequestCompleted& completed);

/// A stream ended with `completed`.
RetryDecision after_completed(const wire::RequestCompleted& completed,
                              const RetryContext& retry_context, const RetryPolicy& policy);

/// A call or a connection failed.
RetryDecision after_failure(const Error& error, Stage stage, const RetryContext& retry_context,
                            const RetryPolicy& policy);

}  // namespace leasehold::tenant
