#include "tools/cell/decide/part_schedule.hpp"

#include <algorithm>

#include "ipc/control/messages/cell/agent_calls.hpp"

namespace leasehold::cell {
namespace {

using std::chrono::milliseconds;

/// For each part beyond the second. A write takes etcd about two milliseconds, and the parts of a
/// ledger then grow by half before their hosts give some up again.
constexpr Duration kPauseOfPart = milliseconds(6);
/// The longest pause after one refusal, for one part and for each further one.
constexpr Duration kFirstPause = milliseconds(4);
constexpr Duration kFirstPauseOfPart = milliseconds(16);
/// Each further refusal makes it longer by this, up to kLongestPause.
constexpr int kGrowth = 8;
constexpr Duration kLongestPause = milliseconds(300);
/// A part may be short because others are just joining again, after an outage of etcd. Each further
/// look comes after twice the time.
constexpr Duration kFirstLook = milliseconds(250);
constexpr unsigned kMostLooks = 10;

/// Between half of the time and one and a half of it.
Duration about(Duration time, std::uint64_t random) {
  const auto range = static_cast<std::uint64_t>(time.count()) + 1;
  return time / 2 + Duration(static_cast<std::int64_t>(random % range));
}

Duration pause_after(unsigned refusals, std::size_t parts, std::uint64_t random) {
  Duration longest = kFirstPause + kFirstPauseOfPart * static_cast<int>(parts);
  for (unsigned i = 1; i < refusals && longest < kLongestPause; ++i) longest *= kGrowth;
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

void PartSchedule::wanted(const TenantPart& part, TimePoint now, std::uint64_t random) {
  const auto others = static_cast<std::int64_t>(std::max<std::size_t>(part.parts(), 2) - 2);
  const Duration pause = kPauseOfPart * others;
  const bool is_soon = look_at_ && *look_at_ <= now + about(pause, pause.count());
  if (!is_soon) look_at(now + about(pause, random));
}

void PartSchedule::stepped(const TenantPart& part, bool has_failed, TimePoint now,
                           std::uint64_t random) {
  retry_at_ = has_failed ? std::optional(now + kRetry) : std::nullopt;
  if (part.refusals() > 0) return look_at(now + pause_after(part.refusals(), part.parts(), random));
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
  return true;
}

}  // namespace leasehold::cell
