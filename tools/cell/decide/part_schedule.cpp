#include "tools/cell/decide/part_schedule.hpp"

#include <algorithm>

#include "ipc/control/messages/cell/agent_calls.hpp"

namespace leasehold::cell {
namespace {

using std::chrono::milliseconds;

/// For each mail of a burst. Hosts that join in a crowd write one after the other, and a host that
/// gives some up before the last one has written gives some up twice.
constexpr Duration kQuietOfMail = milliseconds(3);
constexpr Duration kLongestWaitOfMail = milliseconds(20);
constexpr unsigned kMostMails = Ledger::kMaxParts;
/// A burst ends when no mail has come for this time.
constexpr Duration kBurstEnd = milliseconds(200);
/// Hosts that give some up write a ledger of many parts in turn. A write takes etcd about two
/// milliseconds, and the read before it and its way there as long.
constexpr Duration kTurn = milliseconds(5);
/// The pause after a refusal of a host that gives some up, for each part: those that take a part
/// write first.
constexpr Duration kYieldOfPart = milliseconds(1);
/// The longest pause after one refusal, for one part and for each further one.
constexpr Duration kFirstPause = milliseconds(4);
constexpr Duration kFirstPauseOfPart = milliseconds(16);
/// Each further refusal makes it longer by this, up to kLongestPause.
constexpr int kGrowth = 8;
constexpr Duration kLongestPause = milliseconds(250);
/// A part may be short because others are just joining again, after an outage of etcd. Each further
/// look comes after twice the time.
constexpr Duration kFirstLook = milliseconds(250);
constexpr unsigned kMostLooks = 10;

/// Between half of the time and one and a half of it.
Duration about(Duration time, std::uint64_t random) {
  const auto range = static_cast<std::uint64_t>(time.count()) + 1;
  return time / 2 + Duration(static_cast<std::int64_t>(random % range));
}

Duration turn_of(const TenantPart& part) {
  return part.parts() > 2 ? kTurn * static_cast<int>(part.parts_before()) : Duration::zero();
}

Duration pause_after_refusal(const TenantPart& part, std::uint64_t random) {
  const auto parts = static_cast<int>(part.parts());
  const bool gives_some_up = parts > 2 && !part.limit().share.is_zero();
  if (gives_some_up) return kFirstPause + about(kYieldOfPart * parts, random) + turn_of(part) / 2;
  Duration longest = kFirstPause + kFirstPauseOfPart * parts;
  for (unsigned i = 1; i < part.refusals() && longest < kLongestPause; ++i) longest *= kGrowth;
  longest = std::min(longest, kLongestPause);
  return Duration(static_cast<std::int64_t>(random % static_cast<std::uint64_t>(longest.count())));
}

}  // namespace

void PartSchedule::look_at(TimePoint time) {
  look_at_ = look_at_ ? std::min(*look_at_, time) : time;
}

bool PartSchedule::wants_more(bool has_moved, TimePoint now) {
  const bool is_paused = followed_at_ && now - *followed_at_ < wire::PartWant::kPause;
  if (!is_paused) followed_at_ = now;
  if (is_paused && has_moved) look_at(*followed_at_ + wire::PartWant::kPause);
  return !is_paused;
}

/// Replaces any earlier time, so that the host does not divide before the burst ends.
void PartSchedule::wanted(const TenantPart& part, TimePoint now) {
  if (!burst_ || now - burst_->newest > kBurstEnd) burst_ = Burst{.since = now};
  burst_->newest = now;
  const auto others = static_cast<int>(burst_->mails);
  burst_->mails = std::min(burst_->mails + 1, kMostMails);
  const TimePoint quiet = now + kQuietOfMail * others;
  const TimePoint latest = burst_->since + kLongestWaitOfMail * others;
  look_at_ = std::max({now, not_before_, std::min(quiet, latest) + turn_of(part)});
}

void PartSchedule::stepped(const TenantPart& part, bool has_failed, TimePoint now,
                           std::uint64_t random) {
  retry_at_ = has_failed ? std::optional(now + kRetry) : std::nullopt;
  if (part.refusals() > 0) {
    not_before_ = now + pause_after_refusal(part, random);
    return look_at(not_before_);
  }
  if (!part.is_short()) {
    looks_ = 0;
    return;
  }
  const auto parts = static_cast<std::int64_t>(std::max<std::size_t>(part.parts(), 1));
  const Duration longest = kLookAgain * parts;
  look_at(now + about(std::min(longest, kFirstLook * (std::int64_t{1} << looks_)), random));
  looks_ = std::min(looks_ + 1, kMostLooks);
}

std::optional<TimePoint> PartSchedule::due_at(const TenantDemand& demand) const {
  std::optional<TimePoint> due;
  for (const auto& each : {look_at_, retry_at_, demand.falls_at()})
    if (each) due = due ? std::min(*due, *each) : *each;
  return due;
}

bool PartSchedule::begin_step(TimePoint now) {
  retry_at_.reset();
  if (!look_at_ || *look_at_ > now) return false;
  look_at_.reset();
  if (burst_) burst_->since = now;
  return true;
}

}  // namespace leasehold::cell
