#include "worker/lease/deadline_watcher.hpp"

#include <algorithm>
#include <limits>

#include "common/machine/process.hpp"
#include "common/machine/start_thread.hpp"

namespace leasehold {
namespace {

/// The longest delay until the watcher notices that a lease got a deadline or an earlier deadline,
/// because a change of the table wakes no thread.
constexpr Duration kMaxSleep = std::chrono::seconds(1);
constexpr TimePoint kEndOfTime{std::numeric_limits<std::int64_t>::max()};

}  // namespace

TimePoint next_deadline_check(const RunningRequests& running_requests, const TableReader& table,
                              TimePoint now) {
  TimePoint next = kEndOfTime;
  running_requests.for_each([&](const RunningRequest& running_request) {
    const TimePoint lease = table.deadline(running_request.lease);
    next = std::min(next, now + kMaxSleep);
    if (lease.boottime_ns != 0) next = std::min(next, lease);
    if (running_request.deadline) next = std::min(next, *running_request.deadline);
  });
  return next;
}

Result<std::unique_ptr<DeadlineWatcher>> DeadlineWatcher::start(const Dependencies& dependencies) {
  BoottimeTimer alarm = TRY(BoottimeTimer::create());
  std::unique_ptr<DeadlineWatcher> watcher(new DeadlineWatcher(dependencies, std::move(alarm)));
  watcher->thread_ = TRY(start_thread<std::jthread>(
      "the thread that watches deadlines",
      [raw = watcher.get()](const std::stop_token& stop) { raw->watch(stop); }));
  return watcher;
}

DeadlineWatcher::DeadlineWatcher(const Dependencies& dependencies, BoottimeTimer alarm)
    : deps_(dependencies), alarm_(std::move(alarm)) {
  deps_.running_requests->wake_on_change(&alarm_);
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
      const LeaseExpiry lease{
          .deadline = deps_.table->deadline(running_request.lease),
          .broker_disconnected = deps_.broker_disconnected->load(std::memory_order_relaxed)};
      return deadline_stop(running_request, lease, deps_.clock->now());
    });
    (void)alarm_.wait_until(
        next_deadline_check(*deps_.running_requests, *deps_.table, deps_.clock->now()));
  }
}

}  // namespace leasehold
