#include "worker/engine/running_requests.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

RunningRequests::Places stop_slots_with(std::uint32_t place, const RunningRequest& occupant) {
  RunningRequests::Places places;
  places[place] = occupant;
  return places;
}

RunningRequest occupant(std::uint64_t admission = 1) {
  return {.request = RequestId{"r"}, .lease = {1, 1}, .admission = admission, .deadline = {}};
}

}  // namespace

TEST_CASE("running requests: a running request can be stopped, any other not") {
  RunningRequests board;
  board.occupy(stop_slots_with(3, occupant()));
  REQUIRE_FALSE(board.stop(RequestId{"s"}, LocalStop::Cancelled));
  REQUIRE(board.stop(RequestId{"r"}, LocalStop::Cancelled));
  REQUIRE(board.stops().read(3) == LocalStop::Cancelled);
  REQUIRE(board.stop(RequestId{"r"}, LocalStop::LeaseExpired));
  REQUIRE(board.stops().read(3) == LocalStop::Cancelled);  // the first reason stays
}

TEST_CASE("running requests: a stop lasts as long as its occupant") {
  RunningRequests board;
  board.occupy(stop_slots_with(3, occupant()));
  board.stop(RequestId{"r"}, LocalStop::Cancelled);
  board.occupy(stop_slots_with(3, occupant()));
  REQUIRE(board.stops().read(3) == LocalStop::Cancelled);
  board.occupy(stop_slots_with(3, occupant(2)));  // the same id, admitted again
  REQUIRE(board.stops().read(3) == LocalStop::None);
  board.occupy({});
  REQUIRE_FALSE(board.stop(RequestId{"r"}, LocalStop::Cancelled));
}

TEST_CASE("running requests: whoever waits for changes hears of each, and of nothing else") {
  RunningRequests board;
  BoottimeTimer alarm = BoottimeTimer::create().value();
  const auto has_rung = [&] { return alarm.wait_until(TimePoint{}); };
  board.wake_on_change(&alarm);
  board.occupy(stop_slots_with(3, occupant()));
  REQUIRE(has_rung());
  board.occupy(stop_slots_with(3, occupant()));
  REQUIRE_FALSE(has_rung());
  board.wake_on_change(nullptr);
  board.occupy({});
  REQUIRE_FALSE(has_rung());
}

TEST_CASE("running requests: only what is due is stopped, and gates can tell that something was") {
  RunningRequests board;
  RunningRequests::Places places = stop_slots_with(0, occupant());
  places[9] =
      RunningRequest{.request = RequestId{"late"}, .lease = {2, 1}, .admission = 2, .deadline = {}};
  board.occupy(places);
  const std::uint64_t before = board.stops().changes();
  board.stop_due([](const RunningRequest&) { return LocalStop::None; });
  REQUIRE(board.stops().changes() == before);
  board.stop_due([](const RunningRequest& one) {
    return one.request.value == "late" ? LocalStop::DeadlineExceeded : LocalStop::None;
  });
  REQUIRE(board.stops().read(0) == LocalStop::None);
  REQUIRE(board.stops().read(9) == LocalStop::DeadlineExceeded);
  REQUIRE(board.stops().changes() > before);
}

}  // namespace leasehold
