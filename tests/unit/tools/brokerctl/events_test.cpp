#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

Result<void> show_events(FakeBroker& broker, ListEvents query, Output output = Output::Table) {
  return run({.output = output, .verb = std::move(query)}, broker.dependencies());
}

wire::Json event(std::uint64_t sequence, const std::string& lease = "1.1") {
  return {{"sequence", sequence},
          {"event", "lease_state"},
          {"at_boottime_ns", 1'500'000'000},
          {"tenant", "A"},
          {"lease", lease}};
}

/// One reply of a broker that still has the events `oldest` to `newest`.
wire::Json event_page(std::vector<wire::Json> items, std::uint64_t newest) {
  return {{"items", std::move(items)}, {"newest", newest}};
}

std::vector<wire::Json> lines(const FakeBroker& broker) {
  std::istringstream text(broker.out.str());
  std::vector<wire::Json> found;
  for (std::string line; std::getline(text, line);) found.push_back(wire::Json::parse(line));
  return found;
}

}  // namespace

TEST_CASE("brokerctl events: the list ends at the newest event of the first page") {
  FakeBroker broker;
  broker.replies["event.list"] = {event_page({event(1), event(2)}, 3),
                                  event_page({event(3), event(4)}, 9)};

  REQUIRE(show_events(broker, {}));

  REQUIRE(broker.calls.size() == 2);
  CHECK(broker.calls[0].second == wire::Json{{"after", 0}, {"limit", 1000}});
  CHECK(broker.calls[1].second == wire::Json{{"after", 2}, {"limit", 1000}});
  CHECK(broker.waits.empty());
  CHECK(broker.out.str().find("1.500000  lease_state") != std::string::npos);
  CHECK(broker.out.str().find("lease=1.1") != std::string::npos);
}

TEST_CASE("brokerctl events: a number beyond the newest event is an error, the newest is not") {
  const bool follow = GENERATE(false, true);
  FakeBroker broker;
  broker.waits_left = 0;
  broker.replies["event.list"] = {event_page({}, 9)};

  const auto beyond = show_events(broker, {.after = 10, .follow = follow});

  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == Errc::BadRequest);
  CHECK(beyond.error().detail.find("the newest event is 9") != std::string::npos);
  CHECK(show_events(broker, {.after = 9, .follow = follow}));
}

TEST_CASE("brokerctl events: --limit ends the list") {
  FakeBroker broker;
  broker.replies["event.list"] = {event_page({event(4), event(5)}, 9)};

  REQUIRE(show_events(broker, {.after = 3, .limit = 2}, Output::Json));

  REQUIRE(broker.calls.size() == 1);
  CHECK(broker.calls[0].second == wire::Json{{"after", 3}, {"limit", 2}});
  const auto document = wire::Json::parse(broker.out.str());
  CHECK(document.at("items").size() == 2);
  CHECK(document.at("missed") == 0);
}

TEST_CASE("brokerctl events: --lease and --tenant select the events that name them") {
  FakeBroker broker;
  wire::Json rebind = event(3);
  rebind["old_lease"] = "2.1";
  broker.replies["event.list"] = {event_page({event(1), event(2, "2.1"), rebind}, 3)};

  REQUIRE(show_events(broker, {.lease = LeaseId{2, 1}, .tenant = TenantId{"A"}}, Output::Json));

  const auto document = wire::Json::parse(broker.out.str());
  REQUIRE(document.at("items").size() == 2);
  CHECK(document.at("items").at(0).at("sequence") == 2);
}

TEST_CASE(
    "brokerctl watch: it starts with the next event and polls every 100 ms until interrupted") {
  FakeBroker broker;
  broker.waits_left = 1;
  broker.replies["event.list"] = {event_page({}, 7), event_page({}, 7),
                                  event_page({event(8), event(9)}, 9)};

  REQUIRE(show_events(broker, {.after = std::nullopt, .follow = true}, Output::Json));

  REQUIRE(broker.calls.size() == 3);
  CHECK(broker.calls[0].second.at("limit") == 0);
  CHECK(broker.calls[1].second.at("after") == 7);
  CHECK(broker.waits == std::vector<Duration>(2, std::chrono::milliseconds(100)));
  const auto shown = lines(broker);
  REQUIRE(shown.size() == 2);
  CHECK(shown[0].at("sequence") == 8);
  CHECK(shown[1].at("sequence") == 9);
}

TEST_CASE("brokerctl watch: a full page is followed by the next without a wait") {
  FakeBroker broker;
  broker.waits_left = 0;
  broker.replies["event.list"] = {event_page({event(1), event(2)}, 3), event_page({event(3)}, 3)};

  REQUIRE(show_events(broker, {.follow = true}, Output::Json));

  CHECK(broker.calls.size() == 2);
  CHECK(broker.waits.size() == 1);
}

TEST_CASE("brokerctl watch: events that the broker dropped are reported as missed") {
  FakeBroker broker;
  broker.waits_left = 1;
  broker.replies["event.list"] = {event_page({event(1)}, 1), event_page({event(10)}, 10)};

  REQUIRE(show_events(broker, {.follow = true}, Output::Json));

  const auto shown = lines(broker);
  REQUIRE(shown.size() == 3);
  CHECK(shown[1] ==
        wire::Json{{"event", "events_missed"}, {"after", 1}, {"next", 10}, {"missed", 8}});
  CHECK(shown[2].at("sequence") == 10);
}

TEST_CASE("brokerctl events: each gap between events is reported") {
  FakeBroker broker;
  broker.replies["event.list"] = {event_page({event(1), event(4), event(5), event(7)}, 7)};

  REQUIRE(show_events(broker, {}));

  CHECK(broker.out.str().find("2 events after 1 are missing") != std::string::npos);
  CHECK(broker.out.str().find("1 events after 5 are missing") != std::string::npos);
  CHECK(broker.out.str().find("events after 4 are missing") == std::string::npos);
}

TEST_CASE("brokerctl watch: a wide table says in a sentence that events are missing") {
  FakeBroker broker;
  broker.waits_left = 1;
  broker.replies["event.list"] = {event_page({event(1)}, 1), event_page({event(10)}, 10)};

  REQUIRE(show_events(broker, {.follow = true}, Output::Wide));

  CHECK(broker.out.str().contains("8 events after 1 are missing"));
  CHECK_FALSE(broker.out.str().contains("{"));
}

TEST_CASE("brokerctl events: gaps between events that are not shown are reported once") {
  FakeBroker broker;
  broker.replies["event.list"] = {event_page({event(3), event(5), event(9)}, 9)};

  REQUIRE(show_events(broker, {.tenant = TenantId{"zoe"}}));

  CHECK(broker.out.str() ==
        "… 6 events after 0 are missing, because the broker keeps a bounded number; continuing at "
        "9\n");
}

TEST_CASE("brokerctl events: dropped events are reported in a table and counted in JSON") {
  FakeBroker broker;
  broker.replies["event.list"] = {event_page({event(10)}, 10)};

  REQUIRE(show_events(broker, {}));
  CHECK(broker.out.str().find("9 events after 0 are missing") != std::string::npos);

  broker.out.str("");
  REQUIRE(show_events(broker, {}, Output::Json));
  CHECK(wire::Json::parse(broker.out.str()).at("missed") == 9);
}
