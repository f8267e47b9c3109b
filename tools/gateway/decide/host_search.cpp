// Where a text goes, and when it leaves a host.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/gateway/decide/text_continuation.hpp"

namespace leasehold::gateway {
namespace {

using std::chrono::milliseconds;

/// How long a text without a host, or without a successor, waits before it asks for one again.
constexpr Duration kRetryPause = milliseconds(100);

std::int64_t ms(Duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

bool has_tokens(const EmittedTokens& tokens) {
  return std::ranges::any_of(tokens, [](const auto& some) { return !some.empty(); });
}

/// The versions of the choices that have tokens.
std::vector<std::string> adapters_of(const EmittedTokens& tokens,
                                     std::vector<std::string> adapters) {
  for (std::size_t choice = 0; choice < adapters.size(); ++choice)
    if (tokens[choice].empty()) adapters[choice].clear();
  return adapters;
}

}  // namespace

void TextContinuation::open(std::optional<Attempt>& as, HostId host, MoveCause cause,
                            const Step& step) {
  as.emplace(Attempt{.id = AttemptId{++last_attempt_},
                     .host = host,
                     .incarnation = step.hosts.incarnation(host),
                     .parser = HostStreamParser(terms_.form, terms_.limits, tokens_),
                     .positions = {},
                     .clock = SilenceClock(terms_.silence, step.now)});
  for (const std::vector<TokenId>& known : tokens_)
    as->positions.push_back(static_cast<std::uint32_t>(known.size()));
  step.actions.emplace_back(OpenHost{as->id, host, tokens_, adapters_of(tokens_, adapters_),
                                     search_.from, search_.may_run_there, cause});
}

/// True if a ready host differs from the text in the arithmetic alone.
bool TextContinuation::lacks_arithmetic(const Step& step) const {
  if (terms_.any_arithmetic || !has_tokens(tokens_)) return false;
  const WantedIdentity other{identity_, true};
  const PlaceQuery query{.model = terms_.model, .digest = terms_.placement, .wanted = &other};
  return place(step.hosts, query, step.now).has_value();
}

/// Why the text goes to no further host.
std::optional<Error> TextContinuation::reason_to_stay(const Step& step) const {
  const auto& [code, detail, scope, retry_after_ms] = search_.error;
  if (last_attempt_ > 0 && !terms_.is_replayable) {
    return Error{code,
                 fmt::format("{}; the body was too large to be kept for another host", detail)};
  }
  if (!was_accepted_) return {};
  if (has_tokens(tokens_) && identity_.empty()) {
    return Error{code, fmt::format("{}; the host had named no identity, so that no other one can "
                                   "be known to continue its text",
                                   detail)};
  }
  if (moves_ >= terms_.max_moves) {
    return Error{code,
                 fmt::format("{}; the text has moved {} times, the most allowed", detail, moves_)};
  }
  const Duration waited = search_.since ? step.now - *search_.since : Duration::zero();
  if (waited < terms_.move_timeout) return {};
  const std::string_view hint =
      lacks_arithmetic(step) ? "; with \"any_arithmetic\": true a host that computes the model "
                               "otherwise could have"
                             : "";
  return Error{code, fmt::format("{}; no other host continued the text within {} ms{}", detail,
                                 ms(terms_.move_timeout), hint)};
}

void TextContinuation::open_next(const Step& step) {
  if (const std::optional<Error> error = reason_to_stay(step)) return give_up(*error, step);
  const Result<HostId> host = choose(step);
  if (host) return open(current_, *host, search_.cause, step);
  if (!was_accepted_) return give_up(last_attempt_ > 0 ? search_.error : host.error(), step);
  search_.retry_at = std::min(step.now + kRetryPause, *search_.since + terms_.move_timeout);
}

/// A client that has received nothing gets the answer of a host, if there is one.
void TextContinuation::give_up(const Error& error, const Step& step) {
  if (was_accepted_ || !search_.refused) return fail_request(error, step);
  step.actions.emplace_back(PassAnswer{*search_.refused});
  end(step);
}

/// What the next host must compute; nothing for a text that begins. A successor runs beside the
/// current host, so it must send the same tokens.
std::optional<WantedIdentity> TextContinuation::wanted_of(bool as_successor) const {
  if (as_successor) return WantedIdentity{identity_, false};
  if (has_tokens(tokens_)) return WantedIdentity{identity_, terms_.any_arithmetic};
  return {};
}

/// A text that begins asks each host once.
Result<HostId> TextContinuation::choose(const Step& step) const {
  std::vector<HostId> without;
  for (const Avoided& avoided : avoided_) {
    if (!was_accepted_ || avoided.until > step.now) without.push_back(avoided.host);
  }
  if (current_) without.push_back(current_->host);
  const std::optional<WantedIdentity> wanted = wanted_of(current_ && current_->clock.is_accepted());
  return place(step.hosts,
               {.model = terms_.model,
                .digest = terms_.placement,
                .wanted = wanted ? &*wanted : nullptr,
                .without = without,
                .only_ready = current_.has_value()},
               step.now);
}

bool TextContinuation::may_have_successor() const {
  return !successor_ && current_ && current_->clock.is_accepted() && !identity_.empty() &&
         terms_.is_replayable && moves_ < terms_.max_moves;
}

bool TextContinuation::needs_successor(const Step& step) const {
  const HostState state = step.hosts.state(current_->host, step.now);
  return current_->clock.is_silent() || state == HostState::Draining || state == HostState::Asleep;
}

/// The new host runs before the old one is closed.
void TextContinuation::start_successor(const Step& step) {
  if (has_ended_ || !may_have_successor() || !needs_successor(step)) return;
  if (step.now < search_.retry_at) return;
  search_.retry_at = step.now + kRetryPause;
  const Result<HostId> host = choose(step);
  if (!host) return;
  refreshes_ = 0;
  const MoveCause cause = current_->clock.is_silent() ? MoveCause::Silent : MoveCause::Draining;
  search_.from = current_->host;
  search_.may_run_there = may_still_run(cause);
  open(successor_, *host, cause, step);
}

void TextContinuation::promote_successor(const Step& step) {
  if (current_) step.actions.emplace_back(CloseHost{current_->id});
  current_ = std::exchange(successor_, std::nullopt);
  if (!current_->clock.is_accepted()) return;  // it counts as a move when it accepts
  ++moves_;
  search_ = {};
}

void TextContinuation::lose(AttemptId id, const Loss& loss, const Step& step) {
  const bool was_successor = is_successor(id);
  std::optional<Attempt>& slot = was_successor ? successor_ : current_;
  const Attempt lost = *std::exchange(slot, std::nullopt);
  if (!loss.is_closed) step.actions.emplace_back(CloseHost{id});
  avoid(lost.host, step.now + loss.avoid);
  if (was_successor) return;
  if (lost.clock.is_accepted())
    search_ = {.from = lost.host, .may_run_there = may_still_run(loss.cause)};
  if (!search_.since) search_.since = step.now;
  search_.cause = loss.cause;
  search_.error = loss.error;
  successor_ ? promote_successor(step) : open_next(step);
}

/// A host that has not answered is also left while it may be frozen or will refuse, and another one
/// is ready.
std::optional<SilenceClock::Failure> TextContinuation::failure_of(Attempt& attempt,
                                                                  const Step& step) const {
  const HostState state = step.hosts.state(attempt.host, step.now);
  if (attempt.clock.takes_look(step.now) && state <= HostState::Late && choose(step)) {
    return SilenceClock::Failure{MoveCause::Silent,
                                 fmt::format("is {} and has not answered", name(state))};
  }
  return attempt.clock.failure(step.now);
}

void TextContinuation::lose_if_late(std::optional<Attempt>& attempt, const Step& step) {
  if (!attempt) return;
  const auto failure = failure_of(*attempt, step);
  if (!failure) return;
  Error error{Errc::TimedOut,
              fmt::format("host {} {}", step.hosts.address(attempt->host), failure->what)};
  lose(attempt->id, {failure->cause, std::move(error), kAfterFailure}, step);
}

/// Called before an event is handled, so that nothing of a gone incarnation is forwarded.
void TextContinuation::lose_if_gone(std::optional<Attempt>& attempt, const Step& step) {
  if (!attempt || attempt->incarnation == step.hosts.incarnation(attempt->host)) return;
  Error error{Errc::CellLost, fmt::format("host {} has left its cell, or joined it again, since "
                                          "the text began there",
                                          step.hosts.address(attempt->host))};
  lose(attempt->id, {MoveCause::Gone, std::move(error), kAfterFailure}, step);
}

void TextContinuation::avoid(HostId host, TimePoint until) {
  const auto known = std::ranges::find(avoided_, host, &Avoided::host);
  if (known == avoided_.end())
    avoided_.push_back({host, until});
  else
    known->until = std::max(known->until, until);
}

void TextContinuation::end(const Step& step) {
  for (std::optional<Attempt>* slot : {&current_, &successor_}) {
    if (*slot) step.actions.emplace_back(CloseHost{(*slot)->id});
    slot->reset();
  }
  has_ended_ = true;
}

void TextContinuation::fail_request(Error error, const Step& step) {
  step.actions.emplace_back(FailRequest{.error = std::move(error), .document = {}});
  end(step);
}

TextContinuation::Attempt* TextContinuation::find(AttemptId id) {
  if (current_ && current_->id == id) return &*current_;
  return is_successor(id) ? &*successor_ : nullptr;
}

}  // namespace leasehold::gateway
