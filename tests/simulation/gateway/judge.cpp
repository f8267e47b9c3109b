#include "tests/simulation/gateway/judge.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace leasehold::gateway::simulation {
namespace {

/// The gateway reads what has arrived before it doubts a host, and looks for hosts ten times a
/// second.
constexpr Duration kHelpWithin = std::chrono::milliseconds(160);
constexpr unsigned kFirstContent = 0b011;  // the two identities of one model

void require(bool holds, std::string_view promise) {
  if (!holds) report_violation(promise);
}

}  // namespace

void report_violation(std::string_view what) {
  std::printf("broken promise: %.*s\nrun again with SEED=%llu\n", static_cast<int>(what.size()),
              what.data(), static_cast<unsigned long long>(running_schedule.seed));
  std::fflush(stdout);
  ::_exit(1);
}

void Judge::opened(const OpenHost& open, IdentityIndex identity, TimePoint now) {
  exchanges_[open.attempt] = {
      .host = open.host, .identity = identity, .heard = now, .progressed = now};
}

void Judge::accepted(AttemptId attempt, TimePoint now) {
  Exchange& one = exchanges_.at(attempt);
  one.heard = one.progressed = now;
  one.is_accepted = true;
  const auto differs = [&](const auto& other) {
    return other.second.is_accepted && other.second.identity != one.identity;
  };
  one.other_identity = std::ranges::any_of(exchanges_, differs);
}

void Judge::delivered(AttemptId attempt, TimePoint now) {
  exchanges_.at(attempt).heard = now;
}

void Judge::delivered_group(AttemptId attempt, TimePoint now) {
  exchanges_.at(attempt).progressed = now;
  exchanges_.at(attempt).has_groups = true;
}

void Judge::check(const TextActions& actions, const TextContinuation& text, const HostTable& hosts,
                  TimePoint now) {
  now_ = now;
  hosts_ = &hosts;
  check_silence();
  closed_.clear();
  for (const TextAction& action : actions)
    std::visit([&](const auto& one) { check_action(one); }, action);
  const auto changes = [](const TextAction& action) {
    return !std::holds_alternative<Forward>(action);
  };
  if (std::ranges::any_of(actions, changes)) changed_ = now;
  note_host();
  require(std::max(moves_, text.moves()) <= terms_.max_moves,
          "a text moves at most as often as it may");
  if (error_) check_failure(text);
  const bool is_over = has_finished_ || has_failed_ || has_left_;
  require(text.has_ended() == is_over, "a request ends with one last action");
  require(is_over || closed_.empty() || has_running_exchange(),
          "a healthy host is closed only when another one sends the text");
}

/// A text has moved once another host runs it alone: a successor beside the old host may be
/// dropped.
void Judge::note_host() {
  std::optional<HostId> only;
  for (const auto& [attempt, one] : exchanges_) {
    if (!one.is_open || !one.is_accepted || one.other_identity) continue;
    if (only) return;
    only = one.host;
  }
  if (!only || only == last_host_) return;
  moves_ += last_host_.has_value();
  last_host_ = only;
}

/// The host that never fails runs beside one that has missed two beats.
void Judge::check_silence() const {
  const HostId healthy{0};
  const auto is_open = [](const auto& one) { return one.second.is_open; };
  const auto found = std::ranges::find_if(exchanges_, is_open);
  if (found == exchanges_.end() || std::ranges::count_if(exchanges_, is_open) != 1) return;
  const Exchange& only = found->second;
  const bool can_continue = must_finish_ && only.is_accepted && only.identity == 0 &&
                            only.host != healthy && moves_ < terms_.max_moves &&
                            hosts_->state(healthy, now_) == HostState::Ready;
  const TimePoint silent =
      std::max(std::max(only.heard, runs_since_) + terms_.silence.beat * 2, changed_);
  require(!can_continue || now_ - silent <= kHelpWithin,
          "a silent host has a successor before it is left");
}

void Judge::check_action(const OpenHost& open) {
  require(!has_finished_ && !has_failed_, "nothing is opened after the end");
  check_emitted(open.emitted);
}

void Judge::check_action(const CloseHost& close) {
  Exchange& exchange = exchanges_.at(close.attempt);
  if (exchange.is_open && !may_be_closed(exchange)) closed_.push_back(close.attempt);
  exchange.is_open = false;
}

void Judge::check_action(const Forward& forward) {
  require(!has_finished_ && !has_failed_ && !has_ending_, "nothing is forwarded after the end");
  std::string_view bytes = forward.bytes;
  while (!bytes.empty() && take_group(bytes)) {
  }
  has_ending_ = !bytes.empty() && take_ending(bytes);
  if (!bytes.empty() && !has_ending_)
    report_violation(fmt::format("each position is forwarded once, whole and in order: {}", bytes));
}

void Judge::check_action(const Finish& finish) {
  require(!has_finished_ && !has_failed_, "a request ends once");
  if (text_.form() == AnswerForm::Document) {
    require(take_ending(finish.document), "the document is that of the text");
  } else {
    require(has_ending_, "a text is complete when it finishes");
  }
  exchanges_.at(finish.attempt).is_open = false;
  has_finished_ = true;
}

void Judge::check_action(const PassAnswer&) {
  require(!has_finished_ && !has_failed_, "a request ends once");
  require(!must_finish_, "a request is not refused while a host can serve it");
  require(!last_host_, "an answer is passed on only before the text");
  has_failed_ = true;
}

void Judge::check_action(const FailRequest& failed) {
  require(!has_finished_ && !has_failed_, "a request ends once");
  has_failed_ = true;
  error_ = failed.error;
}

/// A text that began on a host with another identity can continue only there.
void Judge::check_failure(const TextContinuation& text) {
  check_emitted(text.tokens());
  const bool can_continue = must_finish_ && (possible_ & 1) != 0;
  if (can_continue && text.moves() < terms_.max_moves)
    report_violation("a text does not fail while a host can serve it: " + error_->detail);
}

void Judge::check_end(const TextContinuation& text) {
  require(text.has_ended(), "every request ends after the last fault");
  const auto is_open = [](const auto& one) { return one.second.is_open; };
  require(std::ranges::none_of(exchanges_, is_open), "every exchange is closed at the end");
}

/// True without a need for another host that has begun.
bool Judge::may_be_closed(const Exchange& exchange) const {
  if (exchange.is_faulty || exchange.other_identity) return true;
  if (!exchange.is_accepted) {
    return now_ - exchange.heard >= terms_.silence.head_timeout ||
           hosts_->state(exchange.host, now_) <= HostState::Late;
  }
  return now_ - exchange.heard >= terms_.silence.beat * 3 ||
         now_ - exchange.progressed >= terms_.silence.progress_timeout;
}

bool Judge::has_running_exchange() const {
  return std::ranges::any_of(exchanges_, [](const auto& one) {
    return one.second.is_open && one.second.is_accepted && one.second.has_groups;
  });
}

/// Removes one whole group that is the next of its choice.
bool Judge::take_group(std::string_view& bytes) {
  for (std::uint32_t choice = 0; choice < text_.choices(); ++choice) {
    const std::uint32_t position = next_[choice];
    if (position == text_.length(choice)) continue;
    unsigned computed_by = 0;
    std::size_t size = 0;
    for (IdentityIndex identity = 0; identity < kIdentities.size(); ++identity) {
      const std::string group = text_.group(identity, choice, position);
      if ((possible_ >> identity & 1) == 0 || !bytes.starts_with(group)) continue;
      computed_by |= 1u << identity;
      size = group.size();
    }
    if (computed_by == 0) continue;
    keep_possible(computed_by);
    next_[choice] = after_silent(choice, position + 1);
    bytes.remove_prefix(size);
    return true;
  }
  return false;
}

/// True for the ending of the text, after all its groups.
bool Judge::take_ending(std::string_view bytes) {
  for (std::uint32_t choice = 0; choice < text_.choices(); ++choice)
    if (next_[choice] != text_.length(choice)) return false;
  unsigned computed_by = 0;
  for (IdentityIndex identity = 0; identity < kIdentities.size(); ++identity)
    if (bytes == text_.ending(identity)) computed_by |= 1u << identity;
  return keep_possible(computed_by);
}

/// A host is given exactly the tokens that were forwarded.
void Judge::check_emitted(const EmittedTokens& emitted) {
  require(emitted.size() == text_.choices(), "a host gets a list for each choice");
  for (std::uint32_t choice = 0; choice < emitted.size(); ++choice) {
    const auto count = static_cast<std::uint32_t>(emitted[choice].size());
    require(count <= text_.length(choice), "a host gets only tokens of the text");
    for (std::uint32_t position = 0; position < count; ++position) {
      unsigned computed_by = 0;
      for (IdentityIndex identity = 0; identity < kIdentities.size(); ++identity)
        if (text_.token(identity, choice, position) == emitted[choice][position])
          computed_by |= 1u << identity;
      require(keep_possible(computed_by), "a host gets the tokens of its choice, in their order");
    }
    require(after_silent(choice, count) == next_[choice],
            "a host gets the tokens forwarded so far");
  }
}

std::uint32_t Judge::after_silent(std::uint32_t choice, std::uint32_t position) const {
  while (position < text_.length(choice) && text_.is_silent(choice, position)) ++position;
  return position;
}

/// Notes the identities that can have computed a piece. False if the text is by another one.
/// With any_arithmetic a text keeps its model only.
bool Judge::keep_possible(unsigned identities) {
  if ((possible_ & identities) == 0) return false;
  possible_ &= identities;
  if (terms_.any_arithmetic) possible_ = possible_ & kFirstContent ? kFirstContent : possible_;
  return true;
}

}  // namespace leasehold::gateway::simulation
