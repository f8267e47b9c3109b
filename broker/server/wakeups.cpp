#include "broker/server/wakeups.hpp"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstdlib>

namespace leasehold {
namespace {

/// Reports per watchdog interval, so that two may be late.
constexpr int kReportsPerWatchdog = 3;

std::optional<TimePoint> earlier(std::optional<TimePoint> a, std::optional<TimePoint> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

std::optional<TimePoint> Wakeups::next(const Reasons& reasons, TimePoint now) const {
  std::optional<TimePoint> poll;
  if (reasons.needs_poll()) poll = now + Pulse::kPollInterval;
  const auto status = next_status();
  return earlier(poll, status ? std::optional(std::max(*status, now)) : std::nullopt);
}

std::optional<TimePoint> Wakeups::next_status() const {
  if (!manager_) return std::nullopt;
  std::optional<TimePoint> watchdog_due;
  if (manager_->watchdog) watchdog_due = sent_at_ + *manager_->watchdog / kReportsPerWatchdog;
  return earlier(watchdog_due,
                 is_stale_ ? std::optional(sent_at_ + kStatusInterval) : std::nullopt);
}

bool Wakeups::take_status_due(TimePoint now) {
  const auto due = next_status();
  if (!due || *due > now) return false;
  sent_at_ = now;
  is_stale_ = false;
  return true;
}

std::optional<Wakeups::ServiceManager> service_manager_of_this_process() {
  if (std::getenv("NOTIFY_SOCKET") == nullptr) return std::nullopt;
  std::uint64_t watchdog_us = 0;
  if (::sd_watchdog_enabled(0, &watchdog_us) <= 0) return Wakeups::ServiceManager{};
  return Wakeups::ServiceManager{.watchdog = std::chrono::microseconds(watchdog_us)};
}

}  // namespace leasehold
