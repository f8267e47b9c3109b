#include "ipc/client/session.hpp"

#include <fmt/format.h>

#include <utility>

#include "common/expects.hpp"
#include "common/fault_point.hpp"
#include "common/random.hpp"
#include "ipc/client/lease_holder.hpp"
#include "ipc/client/lease_replacement.hpp"

namespace leasehold::client {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(2);
constexpr std::string_view kCancelled = "Cancelled";

/// The note for a text that ended at the token limit. A constrained text would have ended by itself
/// when complete, so the limit has cut it.
std::string note_on_cut(const wire::Sampling& sampling, std::size_t tokens) {
  const bool is_json = sampling.response_format.type != "text";
  if (!is_json && sampling.grammar.empty() && sampling.regex.empty()) return {};
  return fmt::format("the answer is cut off after {} tokens, so it {}; raise --max-tokens", tokens,
                     is_json ? "is not valid JSON" : "may not match the grammar");
}

}  // namespace

TenantSession::TenantSession(boost::asio::io_context& io, Timers& timers, SessionConfig config,
                             Observer observer)
    : io_(io),
      timers_(timers),
      config_(std::move(config)),
      observer_(std::move(observer)),
      ledger_(config_.request),
      replacement_(std::make_unique<LeaseReplacement>(*this)),
      continuity_({.model = config_.model,
                   .text_identity = config_.text_identity,
                   .any_arithmetic = config_.any_arithmetic}),
      retry_counts_(config_.retry) {}

TenantSession::~TenantSession() = default;

std::shared_ptr<TenantSession> TenantSession::create(boost::asio::io_context& io, Timers& timers,
                                                     SessionConfig config, Observer observer) {
  const std::shared_ptr<TenantSession> self(
      new TenantSession(io, timers, std::move(config), std::move(observer)));
  self->holder_ = std::move(self->config_.lease);
  if (!self->holder_)
    self->holder_ = LeaseHolder::create(io, timers, self->config_.broker_path, {});
  self->holder_->set_handlers(self->lease_handlers());
  return self;
}

SessionLease::Handlers TenantSession::lease_handlers() {
  return {.on_lost = unless_over([](TenantSession& session, const Error& error) {
            session.observer_(BrokerDisconnected{error});
          }),
          .on_revoked = unless_over([](TenantSession& session, const wire::LeaseRevoked& revoked) {
            session.lease_revoked(revoked);
          }),
          .on_draining = unless_over([](TenantSession& session, const wire::LeaseDraining& notice) {
            session.replacement_->draining(notice);
          })};
}

/// Ignores the notice while a worker has the request, because the worker then reports the end with
/// the number of tokens. Between two submissions only the broker reports that the lease has ended.
void TenantSession::lease_revoked(const wire::LeaseRevoked& revoked) {
  if (state_ == State::Connecting || state_ == State::Streaming) return;
  if (replacement_->is_failing_over()) return;  // the reply to the replacement decides
  failed({Errc::LeaseRevoked,
          fmt::format("lease {} ({} scope) was revoked ({}) while no request ran under it",
                      to_string(revoked.lease), wire::name(revoked.scope), name(revoked.reason))},
         Stage::Broker);
}

void TenantSession::start() {
  expects(state_ == State::Idle, "a session is started once");
  state_ = State::Acquiring;
  if (const auto& given = holder_->lease()) leases_.granted(given->lease);
  if (!holder_->is_live() && !holder_->is_reconnecting()) return acquire();
  if (const auto checked = continuity_.check(held(), ledger_.positions()); !checked)
    return finish({.error = checked.error()});
  submit();
}

void TenantSession::acquire() {
  wire::LeaseAcquire wanted{.tenant = config_.tenant,
                            .blocks = config_.blocks,
                            .worker = config_.worker,
                            .replaces = leases_.replaceable(),
                            .api_key = config_.api_key,
                            .scavenger = config_.scavenger,
                            .request_id = RequestId{mint_request_id()}};
  continuity_.ask(wanted, ledger_.positions());
  holder_->acquire(
      wanted, unless_over([](TenantSession& session, const Result<wire::LeaseAcquired>& result) {
        session.acquired(result);
      }));
}

void TenantSession::acquired(const Result<wire::LeaseAcquired>& result) {
  // A restarted broker may not know the old lease; acquire one that replaces none.
  const bool is_unknown_lease = !result && result.error().code == Errc::UnknownLease;
  if (is_unknown_lease && leases_.forget_replaceable()) return acquire();
  if (!result) return failed(result.error(), Stage::Broker);
  if (const auto checked = continuity_.check(*result, ledger_.positions()); !checked)
    return finish({.error = checked.error()});
  fault_point(FaultSite::TenantLeaseAcquired);
  const bool is_adopted = result->adopted_blocks > 0;
  if (!is_move(leases_.mode()))
    leases_.set_mode(is_adopted ? wire::RebindMode::Adopt : wire::RebindMode::Reprefill);
  granted(*result, result->adopted_blocks);
  submit();
}

void TenantSession::granted(const wire::LeaseAcquired& lease, std::uint32_t adopted_blocks) {
  observer_(Acquired{.lease = lease.lease,
                     .worker = lease.worker,
                     .blocks = lease.blocks,
                     .ttl_ms = lease.ttl_ms,
                     .deadline_boottime_ns = lease.deadline_boottime_ns,
                     .replaces = leases_.replaceable(),
                     .adopted_blocks = adopted_blocks});
  leases_.granted(lease.lease);
}

void TenantSession::submit() {
  state_ = State::Connecting;
  wire::RequestSubmit request = config_.request;
  request.token = held().token;
  request.emitted = ledger_.tokens();
  request.received_prompt_positions = ledger_.prompt_positions();
  request.adapter_digest = ledger_.adapter_digest();
  if (leases_.accepted() != held().lease) request.rebound_from = leases_.accepted();
  const auto begin = std::exchange(begin_, WorkerStream::Begin::Submit);
  auto stream = WorkerStream::open(io_, held().address, request, stream_handlers(), begin);
  if (!stream) return failed(stream.error(), Stage::Worker);
  stream_ = *std::move(stream);
  fault_point(FaultSite::TenantRequestSubmitted);
}

WorkerStream::Handlers TenantSession::stream_handlers() {
  return {
      .on_submitted =
          unless_over([](TenantSession& session, const wire::RequestSubmitted& message) {
            session.accepted(message);
          }),
      .on_token = unless_over([](TenantSession& session, wire::TokenEmitted&& message) {
        session.take(std::move(message));
      }),
      .on_prompt_logprobs = unless_over([](TenantSession& session, wire::PromptLogprobs&& message) {
        session.take(std::move(message));
      }),
      .on_completed =
          unless_over([](TenantSession& session, const wire::RequestCompleted& message) {
            session.completed(message);
          }),
      .on_failed = unless_over([](TenantSession& session, const Error& error) {
        session.failed(session.with_lost_worker_as_lease_end(error), Stage::Worker);
      })};
}

void TenantSession::accepted(const wire::RequestSubmitted& generating) {
  state_ = State::Streaming;
  retry_counts_.note_accepted(timers_.now());
  if (generating.max_emitted_tokens > 0)
    config_.request.max_emitted_tokens = generating.max_emitted_tokens;
  ledger_.note_adapter(generating.adapter_digest);
  ledger_.set_prompt_tokens(generating.prompt_tokens);
  Submitted submitted{.lease = held().lease, .prompt_tokens = generating.prompt_tokens};
  submitted.adapter_digest = generating.adapter_digest;
  if (!leases_.accepted()) {
    submitted.unchecked = generating.unchecked;
    submitted.unchecked_omitted = generating.unchecked_omitted;
  }
  observer_(submitted);
  const std::uint64_t most_tokens =
      std::uint64_t{generating.prompt_tokens} + config_.request.max_emitted_tokens;
  accepted_under_held(continuity_.accepted(held(), ledger_.positions(), most_tokens));
  replacement_->plan();
}

/// Reports the rebind that ends now, if there is one, and returns how long it took.
Duration TenantSession::accepted_under_held(std::string other_arithmetic) {
  const auto rebind = leases_.accepted_under(held().lease, timers_.now());
  if (!rebind) return {};
  observer_(Rebound{.old_lease = rebind->old_lease,
                    .new_lease = held().lease,
                    .delivered_tokens = ledger_.size(),
                    .other_arithmetic = std::move(other_arithmetic),
                    .mode = rebind->mode,
                    .took = rebind->took});
  return rebind->took;
}

void TenantSession::take(wire::TokenEmitted token) {
  if (const auto taken = ledger_.take(token); !taken) {
    return finish({.error = taken.error()});
  }
  retry_counts_.note_token(timers_.now());
  observer_(
      TokenArrived{.lease = leases_.accepted().value_or(held().lease), .token = std::move(token)});
  fault_point(FaultSite::TenantTokenReceived);
}

void TenantSession::take(wire::PromptLogprobs logprobs) {
  if (const auto taken = ledger_.take(logprobs); !taken) return finish({.error = taken.error()});
  retry_counts_.note_token(timers_.now());
  observer_(PromptLogprobsArrived{std::move(logprobs)});
}

void TenantSession::completed(wire::RequestCompleted completed) {
  if (completed.emitted_tokens > ledger_.size()) {
    return finish({.error = Error{Errc::MalformedMessage,
                                  fmt::format("the worker counted {} tokens, but {} arrived",
                                              completed.emitted_tokens, ledger_.size())}});
  }
  completed.emitted_tokens = ledger_.size();
  ledger_.note_cached(completed.cached_tokens);
  const auto error = error_of(completed);
  if (!error && !ledger_.has_whole_prompt() && completed.reason != kCancelled) {
    return finish(
        {.error = Error{Errc::MalformedMessage,
                        fmt::format("the worker ended the request after {} prompt positions",
                                    ledger_.prompt_positions())}});
  }
  if (!error) {
    return finish({.reason = completed.reason,
                   .note = completed.detail,
                   .text = completed.text,
                   .embedding = completed.embedding});
  }
  const bool is_others =
      error->scope == FailureScope::Shared || error->scope == FailureScope::Adapter;
  const LeaseId own = held().lease;
  if (is_lease_ended(error->code) && !is_others && completed.lease && *completed.lease != own) {
    if (is_whole()) return finish({.reason = "MaxTokensReached"});
    return submit_again_after_earlier(*error);
  }
  // A refusal after waiting also names the lease, which may still be live.
  const bool lease_ended = completed.lease && is_lease_ended(error->code);
  if (lease_ended && !is_others && !is_whole() &&
      replacement_->takes_end(Stage::Worker, [this, completed] { this->completed(completed); }))
    return;
  if (lease_ended) {
    if (is_others) {
      leases_.others_lease_ended(completed.lease);
    } else {
      holder_->note_refused(error->code);
    }
    observer_(Interrupted{.completed = completed, .delivered_tokens = ledger_.size()});
  }
  // The last token may have been sent before the lease was revoked.
  if (is_whole()) {
    return finish({.reason = "MaxTokensReached"});
  }
  act(after_completed(*error, retry_context(), config_.retry), *error,
      lease_ended ? Reported::Already : Reported::NotYet);
}

/// Submits again after a resumed stream ended with the lease of an earlier process; the lease of
/// this session is still live.
void TenantSession::submit_again_after_earlier(const Error& error) {
  RetryContext context = retry_context();
  context.rebind = true;
  RetryDecision decision = after_completed(error, context, config_.retry);
  if (decision) decision->fresh_lease = false;
  act(decision, error, Reported::NotYet);
}

/// Reads BadToken as the end of the lease's worker. Only a successor of the worker refuses a token
/// that the worker accepted. The successor also refuses the token of a lease that was granted just
/// before the worker died. A worker of another broker does so, too, so a token that was never
/// accepted is retried once.
Error TenantSession::with_lost_worker_as_lease_end(const Error& error) {
  const LeaseId own = held().lease;
  if (error.code != Errc::BadToken) return error;
  if (leases_.accepted() != own && (!config_.rebind || leases_.refused_unused_token()))
    return error;
  return {Errc::LeaseFenced,
          fmt::format("lease {} ended with its worker; another worker answers there: {}",
                      to_string(own), error.detail)};
}

void TenantSession::failed(const Error& error, Stage stage) {
  if (replacement_->takes_end(stage, [this, error, stage] { failed(error, stage); })) return;
  const bool is_of_tenant = stage == Stage::Worker && error.scope == FailureScope::Tenant;
  if (is_of_tenant && holder_->lease()) holder_->note_refused(error.code);
  RetryDecision decision = after_failure(error, stage, retry_context(), config_.retry);
  const bool is_stream_lost =
      state_ == State::Streaming && stage == Stage::Worker && error.code == Errc::ConnectionLost;
  if (is_stream_lost) leases_.stream_lost();
  if (decision && is_stream_lost && config_.request.resumable) {
    decision->fresh_lease = false;  // the text continues under its current lease
    begin_ = WorkerStream::Begin::Resume;
  }
  act(decision, error, Reported::NotYet);
}

RetryContext TenantSession::retry_context() const {
  return {.rebind = config_.rebind,
          .had_lease = leases_.had_lease(),
          .names_worker = config_.worker.has_value(),
          .failures = retry_counts_.failures(),
          .setbacks = retry_counts_.setbacks(),
          .waited = leases_.waited(timers_.now())};
}

void TenantSession::act(const RetryDecision& decision, const Error& error, Reported reported) {
  if (cancelled_) return finish({.reason = std::string(kCancelled)});
  if (!decision) return finish({.error = decision.error()});
  schedule_retry(*decision, error, reported);
}

void TenantSession::schedule_retry(const Retry& again, const Error& error, Reported reported) {
  state_ = leases_.had_lease() ? State::Rebinding : State::Acquiring;
  stream_.reset();
  replacement_->stop();
  if (again.fresh_lease) leases_.set_mode(wire::RebindMode::Reprefill);
  leases_.begin_rebind(timers_.now());
  retry_counts_.note_failure(error);
  if (again.delay > Duration::zero() || reported == Reported::NotYet) {
    observer_(Retrying{.error = error, .delay = again.delay, .attempt = retry_counts_.failures()});
  }
  const auto& last = holder_->lease();
  timer_ = timers_.after(again.delay, [this, fresh = again.fresh_lease,
                                       ended = last ? std::optional(last->lease) : std::nullopt] {
    retry(fresh, ended);
  });
}

void TenantSession::retry(bool fresh_lease, std::optional<LeaseId> ended) {
  const auto& last = holder_->lease();
  const bool is_replaced = last && last->lease != ended;
  if (!fresh_lease || is_replaced) return submit();
  if (!replacement_->await_reply()) acquire();
}

void TenantSession::cancel() {
  if (is_over() || cancelled_) return;
  cancelled_ = true;
  const bool worker_has_it = state_ == State::Connecting || state_ == State::Streaming;
  if (!worker_has_it) return finish({.reason = std::string(kCancelled)});
  stream_->cancel();
  timer_ = timers_.after(kTimeout, [this] { finish({.reason = std::string(kCancelled)}); });
}

void TenantSession::leave() {
  cancelled_ = true;
  finish({.reason = std::string(kCancelled)});
}

void TenantSession::finish(Ended ended) {
  if (is_over()) return;
  state_ = State::Releasing;
  ended.delivered_tokens = ledger_.size();
  ended.cached_tokens = ledger_.cached_tokens();
  if (ended.reason == "MaxTokensReached" && ended.note.empty())
    ended.note = note_on_cut(config_.request.sampling, ended.delivered_tokens);
  timer_.reset();
  replacement_->stop();
  if (stream_) stream_->close();
  holder_->session_ended(kTimeout, [weak = weak_from_this(), ended = std::move(ended)] {
    const auto self = weak.lock();
    if (!self) return;
    self->state_ = State::Done;
    self->observer_(ended);
  });
}

}  // namespace leasehold::client
