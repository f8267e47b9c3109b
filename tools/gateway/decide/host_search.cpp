// Where a text goes, and when it leaves a host.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/gateway/decide/text_continuation.hpp"

namespace leasehold::gateway {
namespace {

using std::chrono::milliseconds;

constexpr int kMissingBeats = 3;
/// How long a text without a host, or without a successor, waits before it asks for one again.
constexpr Duration kRetryPause = milliseconds(100);
/// How long the gateway may take to read what has arrived.
constexpr Duration kReadingTime = milliseconds(50);

std::int64_t ms(Duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

}  // namespace

void TextContinuation::open(std::optional<Attempt>& as, HostId host, MoveCause cause,
                            const Step& step) {
  as.emplace(Attempt{.id = AttemptId{++last_attempt_},
                     .host = host,
                     .incarnation = step.hosts.incarnation(host),
                     .parser = HostStreamParser(terms_.form, terms_.limits, tokens_),
                     .positions = {},
                     .heard = step.now,
                     .progressed = step.now});
  for (const std::vector<TokenId>& known : tokens_)
    as->positions.push_back(static_cast<std::uint32_t>(known.size()));
  step.actions.emplace_back(OpenHost{as->id, host, tokens_, search_.from, cause});
}

/// True if a ready host differs from the text in the arithmetic alone.
bool TextContinuation::lacks_arithmetic(const Step& step) const {
  if (terms_.any_arithmetic || !has_tokens()) return false;
  const WantedIdentity other{identity_, true};
  const PlaceQuery query{
      .model = terms_.model, .digest = terms_.placement, .wanted = &other, .may_wake = true};
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
  if (has_tokens() && identity_.empty()) {
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
  if (has_tokens()) return WantedIdentity{identity_, terms_.any_arithmetic};
  return {};
}

/// A text that begins asks each host once.
Result<HostId> TextContinuation::choose(const Step& step) const {
  std::vector<HostId> without;
  for (const Avoided& avoided : avoided_) {
    if (!was_accepted_ || avoided.until > step.now) without.push_back(avoided.host);
  }
  if (current_) without.push_back(current_->host);
  const std::optional<WantedIdentity> wanted = wanted_of(current_.has_value());
  return place(step.hosts,
               {.model = terms_.model,
                .digest = terms_.placement,
                .wanted = wanted ? &*wanted : nullptr,
                .without = without,
                .may_wake = !current_},
               step.now);
}

/// The new host runs before the old one is closed.
void TextContinuation::start_successor(const Step& step) {
  if (has_ended_ || successor_ || !current_ || !current_->is_accepted) return;
  const HostState state = step.hosts.state(current_->host, step.now);
  if (state != HostState::Draining && state != HostState::Asleep) return;
  if (!terms_.is_replayable || moves_ >= terms_.max_moves || identity_.empty()) return;
  if (step.now < search_.retry_at) return;
  search_.retry_at = step.now + kRetryPause;
  const Result<HostId> host = choose(step);
  if (!host) return;
  refreshes_ = 0;
  search_.from = current_->host;
  open(successor_, *host, MoveCause::Draining, step);
}

void TextContinuation::promote_successor(const Step& step) {
  if (current_) step.actions.emplace_back(CloseHost{current_->id});
  current_ = std::exchange(successor_, std::nullopt);
  if (current_->is_accepted) search_ = {};
}

void TextContinuation::lose(AttemptId id, const Loss& loss, const Step& step) {
  const bool was_successor = is_successor(id);
  std::optional<Attempt>& slot = was_successor ? successor_ : current_;
  const Attempt lost = *std::exchange(slot, std::nullopt);
  if (!loss.is_closed) step.actions.emplace_back(CloseHost{id});
  avoid(lost.host, step.now + loss.avoid);
  if (was_successor) return;
  if (lost.is_accepted) search_ = {.from = lost.host};
  if (!search_.since) search_.since = step.now;
  search_.cause = loss.cause;
  search_.error = loss.error;
  successor_ ? promote_successor(step) : open_next(step);
}

/// The gateway may not have run, so that what the host has sent was not read. So a host is left
/// only after a second, prompt timer.
void TextContinuation::lose_if_late(std::optional<Attempt>& attempt, const Step& step) {
  if (!attempt || step.now < deadline_of(*attempt)) return;
  const bool is_prompt = step.now - deadline_of(*attempt) <= kReadingTime;
  if (!attempt->doubted_until || !is_prompt) {
    attempt->doubted_until = step.now + kReadingTime;
    return;
  }
  const std::string& host = step.hosts.address(attempt->host);
  if (!attempt->is_accepted) {
    Error error{Errc::TimedOut,
                fmt::format("host {} did not answer within {} ms", host, ms(terms_.head_timeout))};
    return lose(attempt->id, {MoveCause::Silent, std::move(error), kAfterFailure}, step);
  }
  const bool is_stalled = step.now - attempt->progressed >= terms_.progress_timeout;
  Error error{Errc::TimedOut, is_stalled ? fmt::format("host {} sent no token for {} ms", host,
                                                       ms(terms_.progress_timeout))
                                         : fmt::format("host {} missed {} beats of {} ms", host,
                                                       kMissingBeats, ms(terms_.beat))};
  lose(attempt->id,
       {is_stalled ? MoveCause::Stalled : MoveCause::Silent, std::move(error), kAfterFailure},
       step);
}

/// Before any event is handled, so that nothing of a gone incarnation is forwarded.
void TextContinuation::lose_if_gone(std::optional<Attempt>& attempt, const Step& step) {
  if (!attempt || attempt->incarnation == step.hosts.incarnation(attempt->host)) return;
  Error error{Errc::CellLost, fmt::format("host {} is no longer the member of its cell on which "
                                          "the text ran",
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

bool TextContinuation::has_tokens() const {
  return std::ranges::any_of(tokens_, [](const auto& tokens) { return !tokens.empty(); });
}

/// The most tokens of a choice that were forwarded and that this host has not sent or been given.
std::uint32_t TextContinuation::lag_of(const Attempt& attempt) const {
  std::uint32_t lag = 0;
  for (std::uint32_t choice = 0; choice < tokens_.size(); ++choice) {
    const auto known = static_cast<std::uint32_t>(tokens_[choice].size());
    lag = std::max(lag, known - attempt.positions[choice]);
  }
  return lag;
}

/// Beats count during prefill too, so that a long prompt does not look like a dead host.
TimePoint TextContinuation::deadline_of(const Attempt& attempt) const {
  if (attempt.doubted_until) return *attempt.doubted_until;
  if (!attempt.is_accepted) return attempt.heard + terms_.head_timeout;
  return std::min(attempt.heard + terms_.beat * kMissingBeats,
                  attempt.progressed + terms_.progress_timeout);
}

}  // namespace leasehold::gateway
