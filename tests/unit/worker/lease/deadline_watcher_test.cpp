#include "worker/lease/deadline_watcher.hpp"

#include <catch2/catch.hpp>

#include "ipc/table/lease_table.hpp"

namespace leasehold {
namespace {

constexpr TimePoint kNow{1'000};
constexpr TimePoint kNone{};
constexpr LeaseId kLease{2, 1};

RunningRequest until(std::optional<TimePoint> deadline) {
  return {.request = RequestId{"r"}, .lease = kLease, .admission = 1, .deadline = deadline};
}

/// Waits for another thread's deed without counting on any time; ctest's limit is the bound.
void await(const std::function<bool()>& done) {
  while (!done()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("deadline: a request and a lease stop at their deadline, the lease's reason first") {
  REQUIRE(deadline_stop(until({}), {kNone}, kNow) == LocalStop::None);
  REQUIRE(deadline_stop(until(kNow + Duration(1)), {kNow + Duration(1)}, kNow) == LocalStop::None);
  REQUIRE(deadline_stop(until(kNow), {kNone}, kNow) == LocalStop::DeadlineExceeded);
  REQUIRE(deadline_stop(until({}), {kNow}, kNow) == LocalStop::LeaseExpired);
  REQUIRE(deadline_stop(until(kNow), {kNow}, kNow) == LocalStop::LeaseExpired);
}

TEST_CASE("deadline: a lease nobody could renew ends for the broker's sake") {
  REQUIRE(deadline_stop(until({}), {kNow, true}, kNow) == LocalStop::BrokerLost);
  REQUIRE(deadline_stop(until({}), {kNow + Duration(1), true}, kNow) == LocalStop::None);
  REQUIRE(deadline_stop(until(kNow), {kNone, true}, kNow) == LocalStop::DeadlineExceeded);
}

TEST_CASE("deadline watcher: it stops whoever is due and leaves the others") {
  LeaseTable table = *LeaseTable::create(8);
  const TableReader reader = *TableReader::attach(*table.reader_fd());
  const SystemClock clock;
  table.grant(kLease, clock.now());  // over as soon as it begins
  RunningRequests board;
  const std::atomic<bool> broker_away = false;
  const auto watcher = DeadlineWatcher::begin(
      {.board = &board, .table = &reader, .clock = &clock, .broker_away = &broker_away});
  REQUIRE(watcher.has_value());
  RunningRequests::Places places;
  places[4] = until({});
  places[5] =
      RunningRequest{.request = RequestId{"s"}, .lease = {3, 1}, .admission = 2, .deadline = {}};
  board.occupy(places);
  await([&] { return board.stops().read(4) != LocalStop::None; });
  REQUIRE(board.stops().read(4) == LocalStop::LeaseExpired);
  REQUIRE(board.stops().read(5) == LocalStop::None);
}

}  // namespace leasehold
