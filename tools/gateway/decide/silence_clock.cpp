#include "tools/gateway/decide/silence_clock.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::gateway {
namespace {

using std::chrono::milliseconds;

constexpr int kSilentBeats = 2;
constexpr int kFailedBeats = 3;
/// How long the gateway may take to read what has arrived.
constexpr Duration kReadingTime = milliseconds(50);

std::int64_t in_ms(Duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

}  // namespace

void SilenceClock::accepted(TimePoint now) {
  heard(now);
  progressed(now);
  is_accepted_ = true;
}

void SilenceClock::heard(TimePoint now) {
  heard_ = now;
  doubted_until_.reset();
  is_silent_ = false;
}

TimePoint SilenceClock::fails_at() const {
  if (!is_accepted_) return heard_ + limits_.head_timeout;
  return std::min(heard_ + limits_.beat * kFailedBeats, progressed_ + limits_.progress_timeout);
}

TimePoint SilenceClock::stage_ends() const {
  if (doubted_until_) return *doubted_until_;
  if (!is_accepted_ || is_silent_) return fails_at();
  return std::min(fails_at(), heard_ + limits_.beat * kSilentBeats);
}

TimePoint SilenceClock::deadline() const {
  return is_accepted_ ? stage_ends() : std::min(stage_ends(), look_at_);
}

bool SilenceClock::is_sure(TimePoint now) {
  const TimePoint end = stage_ends();
  if (now < end) return false;
  const bool is_second = doubted_until_ && now - end <= kReadingTime;
  doubted_until_.reset();
  if (!is_second) doubted_until_ = now + kReadingTime;
  return is_second;
}

std::optional<SilenceClock::Failure> SilenceClock::failure(TimePoint now) {
  if (!is_sure(now)) return {};
  if (now < fails_at()) {
    is_silent_ = is_accepted_;
    return {};
  }
  if (!is_accepted_) {
    return Failure{MoveCause::Silent,
                   fmt::format("did not answer within {} ms", in_ms(limits_.head_timeout))};
  }
  if (now - progressed_ >= limits_.progress_timeout) {
    return Failure{MoveCause::Stalled,
                   fmt::format("sent no token for {} ms", in_ms(limits_.progress_timeout))};
  }
  return Failure{MoveCause::Silent,
                 fmt::format("missed {} beats of {} ms", kFailedBeats, in_ms(limits_.beat))};
}

bool SilenceClock::takes_look(TimePoint now) {
  if (is_accepted_ || now < look_at_) return false;
  look_at_ = now + kLookInterval;
  return true;
}

}  // namespace leasehold::gateway
