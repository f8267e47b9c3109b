#include "ipc/client/retry_decision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/errc.hpp"

namespace leasehold::client {
namespace {

std::string revocation_text(const wire::RequestCompleted& completed) {
  return fmt::format("lease {} ({} scope) was revoked ({}) after {} tokens{}{}",
                     completed.lease ? to_string(*completed.lease) : "?",
                     completed.scope.empty() ? "tenant" : completed.scope,
                     completed.revoke_reason.empty() ? "fenced" : completed.revoke_reason,
                     completed.emitted_tokens, completed.detail.empty() ? "" : ": ",
                     completed.detail);
}

std::string other_text(const wire::RequestCompleted& completed) {
  return fmt::format("the request ended with {}{} after {} tokens{}{}", completed.reason,
                     completed.scope.empty() ? "" : " (" + completed.scope + " scope)",
                     completed.emitted_tokens, completed.detail.empty() ? "" : ": ",
                     completed.detail);
}

Error typed_error(const wire::RequestCompleted& completed) {
  const std::string& reason = completed.reason;
  if (reason == "Revoked") return Error{Errc::LeaseRevoked, revocation_text(completed)};
  if (reason == "LeaseFenced") return Error{Errc::LeaseFenced, revocation_text(completed)};
  if (reason == "DeadlineExceeded") return Error{Errc::TimedOut, other_text(completed)};
  if (reason == "EngineError") return Error{Errc::EngineDecodeFailed, other_text(completed)};
  // A request that was queued and then refused ends with the code of the refusal.
  return Error{errc_from_name(reason).value_or(Errc::MalformedMessage), other_text(completed)};
}

/// True if the worker's engine recovers by itself, so that the tenant's lease stays valid.
bool engine_recovers(const Error& error) {
  if (error.scope != FailureScope::Engine) return false;
  return error.code == Errc::WeightsLoading || error.code == Errc::EngineLeaseFenced ||
         error.code == Errc::EngineDecodeFailed || error.code == Errc::BrokerLost;
}

/// True if another worker may have the weights that this one lost. MissingWeight from the broker
/// means that no worker has them.
bool may_go_elsewhere(const Error& error, Stage stage) {
  return error.code == Errc::MissingWeight && stage == Stage::Worker &&
         error.scope != FailureScope::Adapter;
}

/// True for temporary refusals by the worker, after which the lease is still valid.
bool lease_survives(const Error& error) {
  if (engine_recovers(error)) return true;
  const Errc code = error.code;
  return code == Errc::QuotaConcurrent || code == Errc::QuotaTokens ||
         code == Errc::QuotaRequests || code == Errc::QuotaAdapters || code == Errc::QueueFull ||
         code == Errc::QuotaBlocks || code == Errc::PoolExhausted || code == Errc::OutOfBlocks ||
         code == Errc::RebindRateLimited || code == Errc::BrokerLost;
}

/// True for refusals that are temporary only for a session that had a lease: the tenant's other
/// leases hold its quota, or a restarted broker does not know the named worker yet.
bool passes_after_lease(const Error& error, Stage stage, const RetryContext& retry_context) {
  if (!retry_context.had_lease) return false;
  const bool is_unknown_yet = stage == Stage::Broker && error.code == Errc::UnknownWorker;
  return error.retry_after_ms > 0 || (is_unknown_yet && retry_context.names_worker);
}

/// True if a retry may succeed. If the broker was never reached, its address is wrong, so the error
/// is final.
bool is_transient(const Error& error, Stage stage, const RetryContext& retry_context) {
  if (is_lease_ended(error.code))
    return true;  // the broker also reports this when the worker ended before the grant
  if (may_go_elsewhere(error, stage)) return true;
  if (passes_after_lease(error, stage, retry_context)) return true;
  // The host may be out of its cell for long, and another one takes a text that has not begun.
  if (error.code == Errc::CellLost) return retry_context.had_lease;
  const bool is_unreachable =
      error.code == Errc::ConnectionRefused || error.code == Errc::FileNotFound;
  if (!is_unreachable) return is_retryable(error.code);
  return stage == Stage::Worker || retry_context.had_lease;
}

/// Returns the final error if the text has waited as long as it may.
std::optional<Error> check_waited(const Error& error, const RetryContext& retry_context,
                                  const RetryPolicy& policy) {
  if (!retry_context.had_lease || retry_context.waited < policy.rebind_timeout) return {};
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(retry_context.waited);
  return Error{error.code, fmt::format("{} (given up after {} ms)", error.detail, waited.count())};
}

RetryDecision retry_or_give_up(const Error& error, bool fresh_lease,
                               const RetryContext& retry_context, const RetryPolicy& policy) {
  if (retry_context.failures >= policy.max_attempts) {
    return fail(error.code, fmt::format("{} (given up after {} attempts in a row)", error.detail,
                                        retry_context.failures + 1));
  }
  if (auto late = check_waited(error, retry_context, policy)) return std::unexpected(*late);
  const bool at_once = is_lease_ended(error.code) && retry_context.setbacks == 0;
  const Duration delay = at_once ? Duration::zero() : backoff(policy, retry_context.setbacks);
  const Duration asked = std::chrono::milliseconds(error.retry_after_ms);
  return Retry{.delay = std::max(delay, asked), .fresh_lease = fresh_lease};
}

}  // namespace

Duration backoff(const RetryPolicy& policy, int setbacks) {
  // The clamp at 2^20 prevents overflow and is above any useful cap.
  const Duration delay = policy.first_delay * (std::int64_t{1} << std::clamp(setbacks, 0, 20));
  return std::min(delay, policy.max_delay);
}

std::optional<Error> error_of(const wire::RequestCompleted& completed) {
  const std::string& reason = completed.reason;
  if (reason == "EndOfSequence" || reason == "MaxTokensReached" || reason == "ContextFull" ||
      reason == "StopSequence" || reason == "Cancelled") {
    return std::nullopt;
  }
  Error error = typed_error(completed);
  error.scope = failure_scope_from_name(completed.scope).value_or(error.scope);
  error.retry_after_ms = completed.retry_after_ms;
  return error;
}

RetryDecision after_completed(const Error& error, const RetryContext& retry_context,
                              const RetryPolicy& policy) {
  // TimedOut is retryable for calls, but final for a request whose deadline has passed.
  const bool resumable = is_lease_ended(error.code) || may_go_elsewhere(error, Stage::Worker) ||
                         error.retry_after_ms > 0 ||
                         (is_retryable(error.code) && error.code != Errc::TimedOut);
  const bool is_repeated = error.scope == FailureScope::Adapter && retry_context.failures > 0;
  if (!retry_context.rebind || !resumable || is_repeated) return std::unexpected(error);
  const bool lease_is_good = engine_recovers(error) || error.scope == FailureScope::Shared ||
                             error.scope == FailureScope::Adapter;
  return retry_or_give_up(error, !lease_is_good, retry_context, policy);
}

RetryDecision after_failure(const Error& error, Stage stage, const RetryContext& retry_context,
                            const RetryPolicy& policy) {
  // A worker that lost its broker accepts no new request until it reconnects; the lease is still
  // valid.
  const bool broker_unavailable = stage == Stage::Worker && error.code == Errc::BrokerLost;
  // The broker reclaims memory for the tenant, or keeps the tenant's memory for a worker that
  // starts. Both take a bounded time.
  const bool is_preparing =
      stage == Stage::Broker && error.retry_after_ms > 0 &&
      (error.code == Errc::PoolExhausted || error.code == Errc::NoModelLoaded);
  const bool may_try = retry_context.rebind || broker_unavailable || is_preparing;
  if (!may_try || !is_transient(error, stage, retry_context)) return std::unexpected(error);
  // No back-off delays the next attempt: the memory is kept for a few seconds only, and a text goes
  // on as soon as its host is back in its cell, however long that was away.
  const bool is_out_of_cell = error.code == Errc::CellLost && error.retry_after_ms > 0;
  if (is_preparing || is_out_of_cell) {
    if (auto late = check_waited(error, retry_context, policy)) return std::unexpected(*late);
    return Retry{.delay = std::chrono::milliseconds(error.retry_after_ms), .fresh_lease = true};
  }
  const bool fresh = stage == Stage::Broker || !lease_survives(error);
  return retry_or_give_up(error, fresh, retry_context, policy);
}

}  // namespace leasehold::client
