#include "worker/lease/deadline_watcher.hpp"

#include <algorithm>

namespace leasehold {
namespace {

constexpr Duration kLongestSleep = std::chrono::seconds(1);

}  // namespace

LocalStop due_stop(const Occupant& occupant, TimePoint lease_deadline, TimePoint now) {
  if (lease_deadline.boottime_ns != 0 && lease_deadline <= now) return LocalStop::LeaseExpired;
  if (occupant.deadline && *occupant.deadline <= now) return LocalStop::DeadlineExceeded;
  return LocalStop::None;
}

DeadlineWatcher::DeadlineWatcher(RunningBoard& board, const TableReader& table, const Clock& clock)
    : board_(&board),
      table_(&table),
      clock_(&clock),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

DeadlineWatcher::~DeadlineWatcher() {
  thread_.request_stop();
  board_->wake_watcher();
}

void DeadlineWatcher::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    board_->stop_due([this](const Occupant& occupant) {
      return due_stop(occupant, table_->deadline(occupant.lease), clock_->now());
    });
    board_->wait_for_change(until_earliest(), stop);
  }
}

Duration DeadlineWatcher::until_earliest() const {
  Duration shortest = kLongestSleep;
  const TimePoint now = clock_->now();
  board_->each([&](const Occupant& occupant) {
    const TimePoint lease = table_->deadline(occupant.lease);
    if (lease.boottime_ns != 0) shortest = std::min(shortest, lease - now);
    if (occupant.deadline) shortest = std::min(shortest, *occupant.deadline - now);
  });
  return std::max(shortest, Duration{std::chrono::microseconds(50)});
}

}  // namespace leasehold
