#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "ipc/control/events.hpp"
#include "tests/process/broker/fake_worker.hpp"

using namespace leasehold;

TEST_CASE_METHOD(BrokerWithWorker, "broker: lease.list pages contain every lease") {
  for (int i = 0; i < 3; ++i) broker.acquire(client, "a").value();

  const auto page = [&](control::Json params) {
    return client.call("lease.list", {std::move(params), {}}).value().body;
  };
  const control::Json first = page({{"limit", 2}});
  const control::Json second = page({{"after", 1}, {"limit", 2}});

  CHECK(first.at("items").size() == 2);
  CHECK(first.at("more") == true);
  REQUIRE(second.at("items").size() == 1);
  CHECK(second.at("items").at(0).at("lease") == "2.1");
  CHECK(first.at("total") == 3);
  CHECK(second.at("total") == 3);
  CHECK(second.at("more") == false);
  CHECK(page(control::Json::object()).at("items").size() == 3);
  const auto refused = client.call("lease.list", {{{"limit", 1001}}, {}});
  CHECK(refused.error().code == Errc::BadRequest);
}

TEST_CASE("broker: tenant.list pages contain more tenants than one page holds") {
  BrokerProcess broker;
  control::Client client = broker.connect();
  for (int i = 0; i < 1003; ++i) broker.admit(client, fmt::format("tenant-{:04}", i));

  const auto page = [&](control::Json params) {
    return client.call("tenant.list", {std::move(params), {}}).value().body;
  };
  const control::Json first = page(control::Json::object());
  const std::size_t held = first.at("items").size();  // the line is full
  REQUIRE(held < 1000);
  const std::string last = first.at("items").at(held - 1).at("policy").at("tenant");
  CHECK(last == fmt::format("tenant-{:04}", held - 1));
  CHECK(first.at("more") == true);
  const control::Json second = page({{"after", last}});
  REQUIRE(second.at("items").size() == 1003 - held);
  CHECK(second.at("items").at(0).at("policy").at("tenant") == fmt::format("tenant-{:04}", held));
  CHECK(second.at("more") == false);
}

TEST_CASE_METHOD(BrokerWithWorker,
                 "broker: extent.list and quarantine.list pages contain every extent") {
  // One lease for all extents: the first late write revokes every lease of the worker.
  constexpr std::uint32_t kBlocksOfThreeExtents = 24;
  const LeaseId lease = broker.acquire(client, "a", kBlocksOfThreeExtents).value().lease;
  const auto page = [&](const char* method, control::Json params) {
    return client.call(method, {std::move(params), {}}).value().body;
  };
  const auto ids = [](const control::Json& reply) {
    std::vector<std::string> found;
    for (const auto& item : reply.at("items")) found.push_back(item.at("extent"));
    return found;
  };
  const auto all = ids(page("extent.list", control::Json::object()));
  REQUIRE(all.size() == 3);

  const control::Json first = page("extent.list", {{"limit", 2}});
  const control::Json second = page("extent.list", {{"after", all[1]}, {"limit", 2}});

  CHECK(ids(first) == std::vector{all[0], all[1]});
  CHECK(first.at("more") == true);
  CHECK(first.at("total") == 3);
  CHECK(ids(second) == std::vector{all[2]});
  CHECK(second.at("more") == false);

  worker.write_before_unmap();
  broker.revoke(client, lease).value();
  REQUIRE(eventually([&] { return broker.status(client).quarantined_bytes == 6u << 20; }));
  CHECK(ids(page("quarantine.list", {{"limit", 2}})) == std::vector{all[0], all[1]});
  CHECK(page("quarantine.list", {{"limit", 2}}).at("more") == true);
  CHECK(ids(page("quarantine.list", {{"after_extent", all[1]}})) == std::vector{all[2]});
  CHECK(page("quarantine.list", {{"after_region", "0"}}).at("items").empty());
  const control::Json both{{"after_extent", "1"}, {"after_region", "1"}};
  CHECK(client.call("quarantine.list", {both, {}}).error().code == Errc::BadRequest);
}

TEST_CASE("broker: an event with too many sequences is dropped, later events are kept") {
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  const auto step = [](std::uint64_t number, std::size_t sequences) {
    const events::BatchedDecodeStep event{
        .step = number,
        .per_seq_kv_positions = std::vector<std::uint32_t>(sequences, 1),
        .per_seq_leases = std::vector<LeaseId>(sequences, LeaseId{1, 1})};
    return events::to_json(event, TimePoint{1}).dump();
  };
  wire::EventReport report;
  for (const std::size_t sequences : {40'000, 1})
    report.events.push_back(step(sequences, sequences));

  worker.report(report);

  const control::Json items = client.call("event.list", {}).value().body.at("items");
  std::vector<std::uint64_t> steps;
  for (const auto& item : items) {
    if (item.at("event") == "batched_decode_step") steps.push_back(item.at("step"));
  }
  CHECK(steps == std::vector<std::uint64_t>{1});
}
