#include "worker/lease/broker_link.hpp"

#include <catch2/catch.hpp>
#include <future>
#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.hpp"

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
      BrokerLink::connect(
          io, folder.file("s"),
          {.on_call =
               [this](const std::string& method, control::Payload, control::Responder respond) {
                 heard.push_back(method);
                 respond(control::Payload{});
               },
           .on_disconnected = [this](const Error&) { lost = true; }})
          .value();
  std::vector<std::string> heard;  // from the broker
  std::vector<std::string> events;
  std::vector<wire::TenantUsage> usage;
  wire::TenantServed served;
  std::uint32_t served_messages = 0;
  std::vector<std::vector<std::uint64_t>> usage_reports;  // the numbers in each
  std::optional<Error> usage_error;                       // the answer to all of them
  std::vector<control::Responder> unanswered;             // while `answers` is false
  bool answers = true;
  std::shared_ptr<control::Peer> broker = control::Peer::create(
      acceptor.accept(),
      {.on_call = [this](const std::string& method, control::Payload params,
                         control::Responder respond) { take(method, params.body, respond); },
       .on_notification = [this](const std::string& method,
                                 control::Payload params) { take(method, params.body); },
       .on_closed = [this](const Error&) { lost = true; }});

  void take(const std::string& method, const control::Json& body, control::Responder& respond) {
    CHECK(method == wire::UsageReport::kMethod);
    auto& numbers = usage_reports.emplace_back();
    const auto report = wire::UsageReport::from_json(body).value();
    for (const wire::UsageRecord& record : report.records) numbers.push_back(record.number);
    if (!answers) return unanswered.push_back(std::move(respond));
    if (usage_error) return respond(std::unexpected(*usage_error));
    respond(control::Payload{});
  }
  void finish_request(const std::string& tenant = "a") {
    link->report_usage_record(
        {.tenant = {tenant}, .request = {"r"}, .lease = {1, 1}, .reason = "EndOfSequence"});
  }
  bool is_reporting_usage() {
    const auto reported = std::make_shared<bool>(false);
    link->when_usage_reported([reported] { *reported = true; });
    return !*reported;
  }
  /// On another thread than the I/O, as a worker that stops.
  std::future<bool> await_usage_reports() {
    return std::async(std::launch::async, [this] { return link->await_usage_reports(); });
  }
  bool result_of(std::future<bool> waiting) {
    while (waiting.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) io.poll();
    return waiting.get();
  }
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

TEST_CASE("broker link: a notification of the broker is heard like a call") {
  Link test;
  test.broker->start();
  test.broker->notify(std::string(wire::AdaptersChanged::kMethod), {});
  while (test.heard.empty() && !test.lost) test.io.run_one();
  CHECK(test.heard == std::vector<std::string>{std::string(wire::AdaptersChanged::kMethod)});
}

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

TEST_CASE("broker link: usage that changes while disconnected is sent after the resume") {
  Link world;
  world.broker->start();
  world.link->buffer_reports();
  for (std::uint32_t i = 1; i <= 2; ++i) world.link->report_usage({.tenant = {"a"}, .admitted = i});
  world.link->report_served({.tenant = {"a"}, .tokens = 1});
  world.io.poll();
  CHECK(world.usage.empty());
  world.link->flush_reports();
  while (world.served_messages == 0) world.io.run_one();
  REQUIRE(world.usage.size() == 1);
  CHECK(world.usage.front().admitted == 2);
}

TEST_CASE("broker link: usage records of a moment go together, and each is confirmed once") {
  Link world;
  world.broker->start();
  world.answers = false;
  for (int i = 0; i < 3; ++i) world.finish_request();
  while (world.usage_reports.empty()) world.io.run_one();
  world.io.poll();
  CHECK(world.usage_reports == std::vector<std::vector<std::uint64_t>>{{1}});
  CHECK(world.is_reporting_usage());

  world.answers = true;
  world.unanswered.front()(control::Payload{});
  while (world.is_reporting_usage()) world.io.run_one();
  CHECK(world.usage_reports == std::vector<std::vector<std::uint64_t>>{{1}, {2, 3}});
}

TEST_CASE("broker link: a worker that stops waits until its usage records are confirmed") {
  Link world;
  world.broker->start();
  world.answers = false;
  for (int i = 0; i < 2; ++i) world.finish_request();
  auto waiting = world.await_usage_reports();
  for (std::size_t report = 1; report <= 2; ++report) {
    while (world.usage_reports.size() < report) world.io.run_one();
    world.io.poll();
    CHECK(waiting.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready);
    world.unanswered[report - 1](control::Payload{});
  }
  CHECK(world.result_of(std::move(waiting)));
  CHECK(world.result_of(world.await_usage_reports()));  // nothing is left
}

TEST_CASE("broker link: a worker that stops does not wait for what cannot be confirmed") {
  Link world;
  world.broker->start();
  world.answers = false;
  world.finish_request();
  auto waiting = world.await_usage_reports();
  while (world.usage_reports.empty()) world.io.run_one();

  SECTION("the broker's disk is full") {
    world.unanswered.front()(fail(Errc::DiskFull, "full"));
  }
  SECTION("the broker is lost") {
    world.link->buffer_reports();
  }

  CHECK(world.result_of(std::move(waiting)));
}

TEST_CASE("broker link: a broker with a full disk gets the same usage records again") {
  Link world;
  world.broker->start();
  world.usage_error = Error{Errc::DiskFull, "full"};
  world.finish_request();
  while (world.usage_reports.empty()) world.io.run_one();
  world.io.poll();
  CHECK_FALSE(world.is_reporting_usage());  // so that a worker that stops does not wait
  world.usage_error.reset();
  world.finish_request();
  while (world.usage_reports.size() < 2) world.io.run_one();
  CHECK(world.usage_reports.back() == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("broker link: usage records that a broker refuses for good are dropped") {
  Link world;
  world.broker->start();
  world.usage_error = Error{Errc::UnknownMethod, "an older broker"};
  world.finish_request();
  while (world.usage_reports.empty() || world.is_reporting_usage()) world.io.run_one();
  world.usage_error.reset();
  world.finish_request();
  while (world.is_reporting_usage() || world.usage_reports.size() < 2) world.io.run_one();
  CHECK(world.usage_reports.back() == std::vector<std::uint64_t>{2});
}

TEST_CASE(
    "usage queue: beyond its bound the oldest record of the tenant with the most is dropped") {
  UsageQueue queue;
  const auto push = [&queue](const char* tenant) { queue.push({.tenant = {tenant}}); };
  push("quiet");
  for (std::size_t i = 0; i < UsageQueue::kMaxKept + 4; ++i) push("busy");
  CHECK(queue.take_dropped() == 5);
  const auto report = queue.take();
  REQUIRE(report);
  CHECK(report->records.size() == wire::UsageReport::kMaxRecords);
  CHECK(report->records[0].tenant.value == "quiet");
  CHECK(report->records[1].number == 7);
  CHECK_FALSE(queue.take());
  queue.failed();
  CHECK(queue.take()->records[0].number == 1);
  queue.confirmed();
  CHECK(queue.take()->records[0].number == 7 + wire::UsageReport::kMaxRecords - 1);
}
