#include "worker/engine/running_requests.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

RunningRequests::StopSlots stop_slots_with(std::uint32_t stop_slot,
                                           const RunningRequest& running_request) {
  RunningRequests::StopSlots stop_slots;
  stop_slots[stop_slot] = running_request;
  return stop_slots;
}

RunningRequest running_request(std::uint64_t admission = 1) {
  return {
      .engine_request_id = RequestId{"r"}, .lease = {1, 1}, .admission = admission, .deadline = {}};
}

}  // namespace

TEST_CASE("running requests: only a running request can be stopped") {
  RunningRequests running_requests;
  running_requests.update(stop_slots_with(3, running_request()));
  REQUIRE_FALSE(running_requests.stop(RequestId{"s"}, LocalStop::Cancelled));
  REQUIRE(running_requests.stop(RequestId{"r"}, LocalStop::Cancelled));
  REQUIRE(running_requests.stops().read(3) == LocalStop::Cancelled);
  REQUIRE(running_requests.stop(RequestId{"r"}, LocalStop::LeaseExpired));
  REQUIRE(running_requests.stops().read(3) == LocalStop::Cancelled);  // the first reason stays
}

TEST_CASE("running requests: a stop lasts as long as its request holds the slot") {
  RunningRequests running_requests;
  running_requests.update(stop_slots_with(3, running_request()));
  running_requests.stop(RequestId{"r"}, LocalStop::Cancelled);
  running_requests.update(stop_slots_with(3, running_request()));
  REQUIRE(running_requests.stops().read(3) == LocalStop::Cancelled);
  running_requests.update(stop_slots_with(3, running_request(2)));  // the same id, admitted again
  REQUIRE(running_requests.stops().read(3) == LocalStop::None);
  running_requests.update({});
  REQUIRE_FALSE(running_requests.stop(RequestId{"r"}, LocalStop::Cancelled));
}

TEST_CASE("running requests: each running sequence is listed under its stop slot") {
  std::vector<std::unique_ptr<Sequence>> running;
  PromptRequest request;
  request.engine_request_id = RequestId{"r"};
  request.lease = {1, 1};
  running.push_back(std::make_unique<Sequence>(std::move(request), 16));
  running[0]->stop_slot = 3;
  running[0]->admission = 1;
  REQUIRE(stop_slots_of(running) == stop_slots_with(3, running_request()));
}

TEST_CASE("running requests: every change wakes the alarm, and nothing else does") {
  RunningRequests running_requests;
  BoottimeTimer alarm = BoottimeTimer::create().value();
  const auto has_rung = [&] { return alarm.wait_until(TimePoint{}); };
  running_requests.wake_on_change(&alarm);
  running_requests.update(stop_slots_with(3, running_request()));
  REQUIRE(has_rung());
  running_requests.update(stop_slots_with(3, running_request()));
  REQUIRE_FALSE(has_rung());
  running_requests.wake_on_change(nullptr);
  running_requests.update({});
  REQUIRE_FALSE(has_rung());
}

TEST_CASE("running requests: only due requests are stopped, and the change counter moves") {
  RunningRequests running_requests;
  RunningRequests::StopSlots stop_slots = stop_slots_with(0, running_request());
  stop_slots[9] = RunningRequest{
      .engine_request_id = RequestId{"late"}, .lease = {2, 1}, .admission = 2, .deadline = {}};
  running_requests.update(stop_slots);
  const std::uint64_t before = running_requests.stops().changes();
  running_requests.stop_due([](const RunningRequest&) { return LocalStop::None; });
  REQUIRE(running_requests.stops().changes() == before);
  running_requests.stop_due([](const RunningRequest& one) {
    return one.engine_request_id.value == "late" ? LocalStop::DeadlineExceeded : LocalStop::None;
  });
  REQUIRE(running_requests.stops().read(0) == LocalStop::None);
  REQUIRE(running_requests.stops().read(9) == LocalStop::DeadlineExceeded);
  REQUIRE(running_requests.stops().changes() > before);
}

}  // namespace leasehold
