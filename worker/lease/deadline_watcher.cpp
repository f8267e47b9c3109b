#include "worker/lease/deadline_watcher.hpp"

#include <algorithm>

#include "common/process.hpp"

namespace leasehold {
namespace {

/// A deadline that was set, or moved up, for one who runs already is found after so long.
constexpr Duration kLongestSleep = std::chrono::seconds(1);

}  // namespace

LocalStop deadline_stop(const RunningRequest& occupant, LeaseTime lease, TimePoint now) {
  const LocalStop by_lease = lease_stop(lease, now);
  if (by_lease != LocalStop::None) return by_lease;
  if (occupant.deadline && *occupant.deadline <= now) return LocalStop::DeadlineExceeded;
  return LocalStop::None;
}

Result<std::unique_ptr<DeadlineWatcher>> DeadlineWatcher::begin(const Parts& parts) {
  BoottimeTimer alarm = TRY(BoottimeTimer::create());
  return std::unique_ptr<DeadlineWatcher>(new DeadlineWatcher(parts, std::move(alarm)));
}

DeadlineWatcher::DeadlineWatcher(const Parts& parts, BoottimeTimer alarm)
    : parts_(parts), alarm_(std::move(alarm)) {
  parts_.board->wake_on_change(&alarm_);
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

DeadlineWatcher::~DeadlineWatcher() {
  parts_.board->wake_on_change(nullptr);
  thread_.request_stop();
  alarm_.wake();
}

void DeadlineWatcher::watch(const std::stop_token& stop) {
  request_short_time_slice();
  while (!stop.stop_requested()) {
    parts_.board->stop_due([this](const RunningRequest& occupant) {
      const LeaseTime lease{.deadline = parts_.table->deadline(occupant.lease),
                            .broker_away = parts_.broker_away->load(std::memory_order_relaxed)};
      return deadline_stop(occupant, lease, parts_.clock->now());
    });
    (void)alarm_.wait_until(earliest());
  }
}

TimePoint DeadlineWatcher::earliest() const {
  TimePoint earliest = parts_.clock->now() + kLongestSleep;
  parts_.board->each([&](const RunningRequest& occupant) {
    const TimePoint lease = parts_.table->deadline(occupant.lease);
    if (lease.boottime_ns != 0) earliest = std::min(earliest, lease);
    if (occupant.deadline) earliest = std::min(earliest, *occupant.deadline);
  });
  return earliest;
}

}  // namespace leasehold
