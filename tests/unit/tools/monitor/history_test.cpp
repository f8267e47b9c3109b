// What the charts of the page are drawn from.
#include "tools/monitor/history.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using namespace leasehold::monitor;
using control::Json;

namespace {

BrokerState with(std::uint32_t live, std::vector<wire::TenantServed> served) {
  BrokerState state;
  state.status.leases_live = live;
  state.served = std::move(served);
  return state;
}

}  // namespace

TEST_CASE("history: samples are columns of equal length, oldest first") {
  History history;
  history.add(with(3, {}), TimePoint{10});
  history.add(with(4, {{.tenant = {"ann"}, .tokens = 5}}), TimePoint{20});
  const Json json = history.to_json();
  CHECK(json["at_boottime_ns"] == Json({10, 20}));
  CHECK(json["live"] == Json({3, 4}));
  CHECK(json["revoked"] == Json({0, 0}));
  CHECK(json["stuck"] == Json({0, 0}));
  CHECK(json["tokens"] == Json({{"ann", {nullptr, 5}}}));
}

TEST_CASE("history: before the first sample every column is empty") {
  const Json json = History().to_json();
  CHECK(json["at_boottime_ns"] == Json::array());
  CHECK(json["tokens"] == Json::object());
}

TEST_CASE("history: the oldest sample makes room, and with it the names of its tenants") {
  History history;
  history.add(with(1, {{.tenant = {"gone"}, .tokens = 1}}), TimePoint{0});
  for (std::size_t i = 1; i <= History::kMaxSamples; ++i)
    history.add(with(2, {{.tenant = {"ann"}, .tokens = i}}),
                TimePoint{static_cast<std::int64_t>(i)});
  const Json json = history.to_json();
  REQUIRE(json["at_boottime_ns"].size() == History::kMaxSamples);
  CHECK(json["at_boottime_ns"].front() == 1);
  CHECK(json["tokens"].size() == 1);
  CHECK(json["tokens"]["ann"].back() == History::kMaxSamples);
}
