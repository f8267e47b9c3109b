#include "worker/lease/deadline_watcher.hpp"

#include <catch2/catch.hpp>

#include "ipc/table/lease_table.hpp"

namespace leasehold {
namespace {

constexpr TimePoint kNow{1'000};
constexpr TimePoint kNone{};
constexpr LeaseId kLease{2, 1};

RunningRequest until(std::optional<TimePoint> deadline) {
  return {
      .engine_request_id = RequestId{"r"}, .lease = kLease, .admission = 1, .deadline = deadline};
}

/// Waits for another thread without a timeout of its own; ctest's timeout applies.
void await(const std::function<bool()>& done) {
  while (!done()) std::this_thread::yield();
}

}  // namespace

TEST_CASE(
    "deadline: a request stops at its own deadline or its lease's, whose reason comes first") {
  REQUIRE(deadline_stop(until({}), {kNone}, kNow) == LocalStop::None);
  REQUIRE(deadline_stop(until(kNow + Duration(1)), {kNow + Duration(1)}, kNow) == LocalStop::None);
  REQUIRE(deadline_stop(until(kNow), {kNone}, kNow) == LocalStop::DeadlineExceeded);
  REQUIRE(deadline_stop(until({}), {kNow}, kNow) == LocalStop::LeaseExpired);
  REQUIRE(deadline_stop(until(kNow), {kNow}, kNow) == LocalStop::LeaseExpired);
}

TEST_CASE("deadline: a lease that expires while the broker is disconnected ends with BrokerLost") {
  REQUIRE(deadline_stop(until({}), {kNow, true}, kNow) == LocalStop::BrokerLost);
  REQUIRE(deadline_stop(until({}), {kNow + Duration(1), true}, kNow) == LocalStop::None);
  REQUIRE(deadline_stop(until(kNow), {kNone, true}, kNow) == LocalStop::DeadlineExceeded);
}

TEST_CASE("deadline watcher: it wakes for the earliest deadline, and for none while nothing runs") {
  LeaseTable table = *LeaseTable::create(8);
  const TableReader reader = *TableReader::attach(*table.reader_fd());
  table.grant(kLease, kNow + Duration(9));
  RunningRequests running_requests;
  const auto next = [&] { return next_deadline_check(running_requests, reader, kNow); };
  CHECK(next() > kNow + std::chrono::hours(24 * 365));

  RunningRequests::StopSlots stop_slots;
  stop_slots[5] = RunningRequest{
      .engine_request_id = RequestId{"s"}, .lease = {3, 1}, .admission = 2, .deadline = {}};
  running_requests.update(stop_slots);
  CHECK(next() == kNow + std::chrono::seconds(1));  // a renewal may give its lease a deadline
  stop_slots[4] = until({});
  running_requests.update(stop_slots);
  CHECK(next() == kNow + Duration(9));
  stop_slots[4] = until(kNow + Duration(5));
  running_requests.update(stop_slots);
  CHECK(next() == kNow + Duration(5));
}

TEST_CASE("deadline watcher: it stops due requests and no others") {
  LeaseTable table = *LeaseTable::create(8);
  const TableReader reader = *TableReader::attach(*table.reader_fd());
  const SystemClock clock;
  table.grant(kLease, clock.now());  // already expired
  RunningRequests running_requests;
  const std::atomic<bool> broker_disconnected = false;
  const auto watcher = DeadlineWatcher::start({.running_requests = &running_requests,
                                               .table = &reader,
                                               .clock = &clock,
                                               .broker_disconnected = &broker_disconnected});
  REQUIRE(watcher.has_value());
  RunningRequests::StopSlots stop_slots;
  stop_slots[4] = until({});
  stop_slots[5] = RunningRequest{
      .engine_request_id = RequestId{"s"}, .lease = {3, 1}, .admission = 2, .deadline = {}};
  running_requests.update(stop_slots);
  await([&] { return running_requests.stops().read(4) != LocalStop::None; });
  REQUIRE(running_requests.stops().read(4) == LocalStop::LeaseExpired);
  REQUIRE(running_requests.stops().read(5) == LocalStop::None);
}

}  // namespace leasehold
