#include "worker/lease/deadline_watcher.hpp"

#include <algorithm>

#include "common/process.hpp"

namespace leasehold {
namespace {

/// The longest delay until the watcher notices that a lease got a deadline or an earlier one. A
/// change of the table wakes no thread.
constexpr Duration kMaxSleep = std::chrono::seconds(1);

}  // namespace

LocalStop deadline_stop(const RunningRequest& running_request, LeaseTime lease, TimePoint now) {
  const LocalStop by_lease = lease_stop(lease, now);
  if (by_lease != LocalStop::None) return by_lease;
  if (running_request.deadline && *running_request.deadline <= now)
    return LocalStop::DeadlineExceeded;
  return LocalStop::None;
}

Result<std::unique_ptr<DeadlineWatcher>> DeadlineWatcher::start(const Dependencies& dependencies) {
  BoottimeTimer alarm = TRY(BoottimeTimer::create());
  return std::unique_ptr<DeadlineWatcher>(new DeadlineWatcher(dependencies, std::move(alarm)));
}

DeadlineWatcher::DeadlineWatcher(const Dependencies& dependencies, BoottimeTimer alarm)
    : deps_(dependencies), alarm_(std::move(alarm)) {
  deps_.running_requests->wake_on_change(&alarm_);
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

DeadlineWatcher::~DeadlineWatcher() {
  deps_.running_requests->wake_on_change(nullptr);
  thread_.request_stop();
  alarm_.wake();
}

void DeadlineWatcher::watch(const std::stop_token& stop) {
  set_thread_name("watcher");
  request_short_time_slice();
  while (!stop.stop_requested()) {
    deps_.running_requests->stop_due([this](const RunningRequest& running_request) {
      const LeaseTime lease{
          .deadline = deps_.table->deadline(running_request.lease),
          .broker_disconnected = deps_.broker_disconnected->load(std::memory_order_relaxed)};
      return deadline_stop(running_request, lease, deps_.clock->now());
    });
    (void)alarm_.wait_until(earliest_deadline());
  }
}

TimePoint DeadlineWatcher::earliest_deadline() const {
  TimePoint earliest_deadline = deps_.clock->now() + kMaxSleep;
  deps_.running_requests->for_each([&](const RunningRequest& running_request) {
    const TimePoint lease = deps_.table->deadline(running_request.lease);
    if (lease.boottime_ns != 0) earliest_deadline = std::min(earliest_deadline, lease);
    if (running_request.deadline)
      earliest_deadline = std::min(earliest_deadline, *running_request.deadline);
  });
  return earliest_deadline;
}

}  // namespace leasehold
