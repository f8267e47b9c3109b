#include "tools/gateway/decide/text_continuation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/expects.hpp"

namespace leasehold::gateway {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::uint32_t kMaxRefreshes = 2;
/// How long a text avoids a host that can never serve it.
constexpr Duration kForever = hours(24 * 365);

/// `least`: after a failure that says nothing of time.
Duration avoid_after(const Error& error, ErrorOutcome outcome, Duration least) {
  if (outcome != ErrorOutcome::Move) return kForever;
  return std::max<Duration>(least, milliseconds(error.retry_after_ms));
}

Error error_of(const HostRefused& refused) {
  if (refused.error) return *refused.error;
  return {Errc::SystemError, fmt::format("a host answered with the status {}", refused.status)};
}

/// Neighbours become one write.
void forward(std::string&& bytes, TextActions& actions) {
  if (bytes.empty()) return;
  auto* last = actions.empty() ? nullptr : std::get_if<Forward>(&actions.back());
  if (last != nullptr) {
    last->bytes += bytes;
  } else {
    actions.emplace_back(Forward{std::move(bytes)});
  }
}

/// The most tokens of a choice that were forwarded and that a host has not sent or been given.
std::uint32_t lag_of(const std::vector<std::uint32_t>& positions, const EmittedTokens& tokens) {
  std::uint32_t lag = 0;
  for (std::size_t choice = 0; choice < tokens.size(); ++choice)
    lag = std::max(lag, static_cast<std::uint32_t>(tokens[choice].size()) - positions[choice]);
  return lag;
}

}  // namespace

std::string_view name(MoveCause cause) {
  switch (cause) {
    case MoveCause::None:
      return "none";
    case MoveCause::Lost:
      return "lost";
    case MoveCause::Silent:
      return "silent";
    case MoveCause::Stalled:
      return "stalled";
    case MoveCause::Error:
      return "error";
    case MoveCause::Draining:
      return "draining";
    case MoveCause::OtherIdentity:
      return "other_identity";
    case MoveCause::Malformed:
      return "malformed";
    case MoveCause::Gone:
      return "gone";
  }
  return "";
}

TextContinuation::TextContinuation(ContinuationTerms terms)
    : terms_(std::move(terms)), tokens_(terms_.limits.choices), adapters_(terms_.limits.choices) {}

void TextContinuation::on(const TextEvent& event, const HostTable& hosts, TimePoint now,
                          TextActions& actions) {
  if (has_ended_) return;
  const Step step{.hosts = hosts, .now = now, .actions = actions};
  lose_if_gone(successor_, step);
  lose_if_gone(current_, step);
  if (has_ended_) return;
  std::visit([&](const auto& one) { handle(one, step); }, event);
  start_successor(step);
}

std::optional<TimePoint> TextContinuation::next_deadline() const {
  if (has_ended_) return {};
  TimePoint first = current_ ? current_->clock.deadline() : search_.retry_at;
  if (successor_) first = std::min(first, successor_->clock.deadline());
  if (may_have_successor() && current_->clock.is_silent())
    first = std::min(first, search_.retry_at);
  return first;
}

void TextContinuation::handle(const RequestArrived&, const Step& step) {
  open_next(step);
}

void TextContinuation::handle(const HostAccepted& event, const Step& step) {
  Attempt* attempt = find(event.attempt);
  if (attempt == nullptr || attempt->clock.is_accepted()) return;
  const bool as_successor = is_successor(attempt->id);
  const std::optional<WantedIdentity> wanted = wanted_of(as_successor);
  if (wanted && !may_continue(*wanted, event.identity)) {
    Error error{Errc::UnknownWorker,
                fmt::format("host {} computes as \"{}\", and the text as \"{}\"",
                            step.hosts.address(attempt->host), event.identity, identity_)};
    return lose(attempt->id, {MoveCause::OtherIdentity, std::move(error), kForever}, step);
  }
  if (!as_successor) identity_ = event.identity;
  attempt->clock.accepted(step.now);
  if (as_successor) return;
  if (std::exchange(was_accepted_, true)) ++moves_;
  search_ = {};
}

void TextContinuation::handle(const HostRefused& event, const Step& step) {
  Attempt* attempt = find(event.attempt);
  if (attempt == nullptr) return;
  const Error error = error_of(event);
  const TextStage stage = was_accepted_ ? TextStage::Moving : TextStage::Starting;
  const ErrorOutcome outcome =
      event.error ? outcome_of(error.code, stage) : outcome_of_status(event.status);
  if (outcome != ErrorOutcome::PassOn || is_successor(attempt->id)) {
    search_.refused = attempt->id;
    const Loss loss{MoveCause::Error, error, avoid_after(error, outcome, kAfterFailure), true};
    return lose(attempt->id, loss, step);
  }
  if (was_accepted_) return fail_request(error, step);
  current_.reset();
  step.actions.emplace_back(PassAnswer{event.attempt});
  end(step);
}

/// A group may close its exchange, so the exchange is looked up for each event.
void TextContinuation::handle(const HostBytes& event, const Step& step) {
  Attempt* attempt = find(event.attempt);
  if (attempt == nullptr) return;
  expects(attempt->clock.is_accepted(), "a host accepts before its bytes arrive");
  attempt->clock.heard(step.now);
  events_.clear();
  const Result<void> read = attempt->parser.read(event.bytes, events_);
  for (HostEvent& one : events_) {
    attempt = find(event.attempt);
    if (attempt == nullptr) return;
    std::visit([&](auto& content) { take(*attempt, content, step); }, one);
  }
  attempt = find(event.attempt);
  if (attempt == nullptr || read) return;
  Error error{read.error().code,
              fmt::format("host {}: {}", step.hosts.address(attempt->host), read.error().detail)};
  lose(event.attempt, {MoveCause::Malformed, std::move(error), kForever}, step);
}

void TextContinuation::handle(const HostLost& event, const Step& step) {
  if (find(event.attempt) == nullptr) return;
  lose(event.attempt, {MoveCause::Lost, event.error, kAfterFailure, true}, step);
}

void TextContinuation::handle(const TimerFired&, const Step& step) {
  lose_if_late(successor_, step);
  lose_if_late(current_, step);
  if (!has_ended_ && !current_ && step.now >= search_.retry_at) open_next(step);
}

void TextContinuation::handle(const ClientLeft&, const Step& step) {
  end(step);
}

void TextContinuation::handle(const GatewayStopped& event, const Step& step) {
  fail_request(event.error, step);
}

void TextContinuation::take(Attempt&, const Beat&, const Step&) {}

/// A choice without tokens may begin under another version, unless a second host sends it, too.
void TextContinuation::take(Attempt& from, const AdapterNamed& adapter, const Step& step) {
  std::string& known = adapters_[adapter.choice];
  const bool may_begin = tokens_[adapter.choice].empty() && !(current_ && successor_);
  if (known.empty() || may_begin) known = adapter.digest;
  if (known == adapter.digest) return;
  Error error{Errc::UnknownAdapter,
              fmt::format("host {} has version {} of the adapter of choice {}, whose tokens are of "
                          "version {}",
                          step.hosts.address(from.host), adapter.digest, adapter.choice, known)};
  lose(from.id, {MoveCause::OtherIdentity, std::move(error), kForever}, step);
}

void TextContinuation::take(Attempt& from, TokenGroup& group, const Step& step) {
  std::vector<TokenId>& known = tokens_[group.choice];
  ensures(group.position == from.positions[group.choice] && group.position <= known.size(),
          "a stream counts on from what its host was given");
  if (group.position == known.size()) {
    known.push_back(group.token);
    forward(std::move(group.bytes), step.actions);
  } else if (known[group.position] != group.token) {
    Error error{Errc::MalformedMessage,
                fmt::format("host {} has token {} at position {} of choice {}, and {} was "
                            "forwarded; its text is another one",
                            step.hosts.address(from.host), group.token, group.position,
                            group.choice, known[group.position])};
    return lose(from.id, {MoveCause::Malformed, std::move(error), kForever}, step);
  }
  ++from.positions[group.choice];
  from.clock.progressed(step.now);
  const bool is_first = !std::exchange(from.has_groups, true);
  if (is_successor(from.id)) return hand_over(is_first, step);
  if (!successor_ || needs_successor(step)) return;
  step.actions.emplace_back(CloseHost{successor_->id});
  successor_.reset();
}

void TextContinuation::take(Attempt& from, EndingGroup& ending, const Step& step) {
  if (lag_of(from.positions, tokens_) > 0) {
    Error error{Errc::MalformedMessage,
                fmt::format("host {} ends the text {} tokens before its end",
                            step.hosts.address(from.host), lag_of(from.positions, tokens_))};
    return lose(from.id, {MoveCause::Malformed, std::move(error), kForever}, step);
  }
  Finish finish{.attempt = from.id, .document = {}};
  if (terms_.form == AnswerForm::Document) {
    finish.document = std::move(ending.bytes);
  } else {
    forward(std::move(ending.bytes), step.actions);
  }
  (is_successor(from.id) ? successor_ : current_).reset();
  step.actions.emplace_back(std::move(finish));
  end(step);
}

/// A host that took the text over may refuse it only after its first beats.
void TextContinuation::take(Attempt& from, HostError& error, const Step& step) {
  const bool is_moving = moves_ > 0 && !from.has_groups;
  const ErrorOutcome outcome =
      outcome_of(error.error.code, is_moving ? TextStage::Moving : TextStage::Running);
  if (outcome != ErrorOutcome::PassOn || is_successor(from.id)) {
    const Loss loss{MoveCause::Error, error.error,
                    avoid_after(error.error, outcome, kAfterFailure)};
    return lose(from.id, loss, step);
  }
  FailRequest failed{.error = std::move(error.error), .is_announced = false, .document = {}};
  if (terms_.form == AnswerForm::Document) {
    failed.document = std::move(error.bytes);
  } else {
    failed.is_announced = !error.bytes.empty();
    forward(std::move(error.bytes), step.actions);
  }
  step.actions.emplace_back(std::move(failed));
  end(step);
}

/// Promotes the successor once it is at most one token behind: the client then waits for that token
/// and the next one, and a new request would hardly be closer. If the successor's first group,
/// after its prefill, is further behind, asks the successor again.
void TextContinuation::hand_over(bool is_first_group, const Step& step) {
  const std::uint32_t lag = lag_of(successor_->positions, tokens_);
  if (lag <= 1) return promote_successor(step);
  if (!is_first_group || refreshes_ == kMaxRefreshes) return;
  const HostId host = successor_->host;
  if (step.hosts.state(host, step.now) != HostState::Ready) return;  // it takes no new request
  ++refreshes_;
  step.actions.emplace_back(CloseHost{successor_->id});
  open(successor_, host, MoveCause::None, step);
}

}  // namespace leasehold::gateway
