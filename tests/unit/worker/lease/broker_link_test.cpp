#include "worker/lease/broker_link.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/temporary_directory.hpp"

using namespace leasehold;

namespace {

/// A worker's link, and a broker that reads when the test says so.
struct Link {
  boost::asio::io_context io;
  TemporaryDirectory folder = TemporaryDirectory::create("link").value();
  boost::asio::local::stream_protocol::acceptor acceptor =
      control::listen_on(io, folder.file("s"), 0600).value();
  bool lost = false;
  std::unique_ptr<BrokerLink> link =
      BrokerLink::connect(io, folder.file("s"),
                          {.on_call = {}, .on_disconnected = [this](const Error&) { lost = true; }})
          .value();
  std::vector<std::string> events;
  std::vector<wire::TenantUsage> usage;
  wire::TenantServed served;
  std::uint32_t served_messages = 0;
  std::shared_ptr<control::Peer> broker = control::Peer::create(
      acceptor.accept(),
      {.on_call = {},
       .on_notification = [this](const std::string& method,
                                 control::Payload params) { take(method, params.body); },
       .on_closed = [this](const Error&) { lost = true; }});

  void take(const std::string& method, const control::Json& body) {
    if (method == wire::TenantUsage::kMethod) {
      return usage.push_back(wire::TenantUsage::from_json(body).value());
    }
    if (method == wire::TenantServed::kMethod) {
      ++served_messages;
      return served.add(wire::TenantServed::from_json(body).value());
    }
    const auto report = wire::EventReport::from_json(body).value();
    events.insert(events.end(), report.events.begin(), report.events.end());
  }
};

}  // namespace

TEST_CASE("broker link: a broker that does not read for long costs old reports, not the link") {
  constexpr std::uint32_t kReports = 60'000;  // 16 MB of lines, twice what a connection queues
  Link world;
  for (std::uint32_t i = 1; i <= kReports; ++i) {
    world.link->report(events::RequestCompletedEvent{.request = {std::to_string(i)},
                                                     .tenant = std::string(100, 't'),
                                                     .reason = "EndOfSequence",
                                                     .emitted_tokens = i},
                       TimePoint{i});
    if (i % 100 == 0) world.link->report_usage({.tenant = {"a"}, .admitted = i});
    if (i % 100 == 0)
      world.link->report_served({.tenant = {"a"}, .tokens = 100, .cached_blocks = i});
  }
  world.io.poll();
  REQUIRE_FALSE(world.lost);
  CHECK(world.events.empty());

  world.broker->start();
  const auto newest = std::to_string(kReports);
  while (!world.lost && (world.events.empty() || !world.events.back().contains(newest))) {
    world.io.run_one();
  }
  while (!world.lost && (world.usage.empty() || world.usage.back().admitted < kReports)) {
    world.io.run_one();
  }
  while (!world.lost && world.served.tokens < kReports) world.io.run_one();
  CHECK(world.served.tokens == kReports);
  CHECK(world.served.cached_blocks == kReports);
  CHECK(world.served_messages < 100);
  CHECK_FALSE(world.lost);
  CHECK(world.events.size() >= ReportQueue::kMaxKept);
  CHECK(world.events.size() < kReports);
  CHECK(world.usage.size() < 100);
}

TEST_CASE("broker link: a broker that reads gets every report in order") {
  Link world;
  world.broker->start();
  for (std::uint32_t i = 1; i <= 5000; ++i) {
    world.link->report(events::RequestCompletedEvent{.request = {std::to_string(i)}}, TimePoint{i});
    world.io.poll();
  }
  while (world.events.size() < 5000) world.io.run_one();
  for (std::size_t i = 0; i < world.events.size(); ++i) {
    REQUIRE(control::Json::parse(world.events[i])["at_boottime_ns"] == i + 1);
  }
}
