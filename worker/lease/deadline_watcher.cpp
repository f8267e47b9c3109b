#include "worker/lease/deadline_watcher.hpp"

#include <algorithm>

#include "common/process.hpp"

namespace leasehold {
namespace {

constexpr Duration kLongestSleep = std::chrono::seconds(1);

}  // namespace

LocalStop due_stop(const Occupant& occupant, LeaseTime lease, TimePoint now) {
  const LocalStop by_lease = lease_stop(lease, now);
  if (by_lease != LocalStop::None) return by_lease;
  if (occupant.deadline && *occupant.deadline <= now) return LocalStop::DeadlineExceeded;
  return LocalStop::None;
}

DeadlineWatcher::DeadlineWatcher(const Parts& parts)
    : parts_(parts), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

DeadlineWatcher::~DeadlineWatcher() {
  thread_.request_stop();
  parts_.board->wake_watcher();
}

void DeadlineWatcher::watch(const std::stop_token& stop) {
  ask_for_short_turns();
  while (!stop.stop_requested()) {
    parts_.board->stop_due([this](const Occupant& occupant) {
      const LeaseTime lease{.deadline = parts_.table->deadline(occupant.lease),
                            .broker_away = parts_.broker_away->load(std::memory_order_relaxed)};
      return due_stop(occupant, lease, parts_.clock->now());
    });
    parts_.board->wait_for_change(until_earliest(), stop);
  }
}

Duration DeadlineWatcher::until_earliest() const {
  Duration shortest = kLongestSleep;
  const TimePoint now = parts_.clock->now();
  parts_.board->each([&](const Occupant& occupant) {
    const TimePoint lease = parts_.table->deadline(occupant.lease);
    if (lease.boottime_ns != 0) shortest = std::min(shortest, lease - now);
    if (occupant.deadline) shortest = std::min(shortest, *occupant.deadline - now);
  });
  return std::max(shortest, Duration{std::chrono::microseconds(50)});
}

}  // namespace leasehold
