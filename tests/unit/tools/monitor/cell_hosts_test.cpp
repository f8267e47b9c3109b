// The hosts of a cell, from known entries of etcd.
#include "tools/monitor/cell_hosts.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tools/monitor/cell_reader.hpp"

using namespace leasehold;
using namespace leasehold::monitor;
using Catch::Contains;
using std::chrono::seconds;

namespace {

const cell::CellKeys kKeys(CellName{"c"});

etcd::KeyValue host(const std::string& name, std::int64_t created, std::int64_t beat,
                    const std::string& more = "") {
  return {.key = kKeys.host({name}),
          .value = R"({"beat":"1","ttl_ms":10000,"free_blocks":7)" + more + "}",
          .created = {created},
          .modified = {beat}};
}

}  // namespace

TEST_CASE("cell hosts: a host is silent when no beat was found for longer than TTL and slack") {
  ManualClock clock;
  CellHosts hosts(kKeys);
  const auto list = [&](std::int64_t beat_of_b) {
    hosts.listed({.config = {},
                  .hosts = {host("a", 3, 5), host("b", 4, beat_of_b, R"(,"draining":true)")},
                  .ledgers = {}},
                 clock.now());
    return hosts.to_json(clock.now()).at("items");
  };
  CHECK(list(6).at(0).at("state") == "member");
  clock.advance(seconds(11));
  CHECK(list(7).at(0).at("state") == "member");
  clock.advance(seconds(1));
  const auto items = list(7);
  CHECK(items.at(0).at("state") == "silent");
  CHECK(items.at(0).at("beat_age_ms") == 12'000);
  CHECK(items.at(1).at("state") == "draining");
  CHECK(items.at(1).at("beat_age_ms") == 1'000);
  const std::string text = hosts.metrics(clock.now());
  for (const char* line : {"leasehold_monitor_cell_hosts{state=\"silent\"} 1\n",
                           "leasehold_monitor_cell_hosts{state=\"draining\"} 1\n",
                           "leasehold_monitor_cell_host_beat_age_seconds{host=\"a\"} 12\n",
                           "leasehold_monitor_cell_host_free_blocks{host=\"b\"} 7\n"})
    CHECK_THAT(text, Contains(line));
}

TEST_CASE("cell hosts: no host becomes silent while etcd cannot be read") {
  ManualClock clock;
  CellHosts hosts(kKeys);
  hosts.listed({.config = {}, .hosts = {host("a", 3, 5)}, .ledgers = {}}, clock.now());
  clock.advance(seconds(60));
  const auto item = hosts.to_json(clock.now()).at("items").at(0);
  CHECK(item.at("state") == "member");
  CHECK(item.at("beat_age_ms") == 60'000);
}

TEST_CASE("cell hosts: a part counts for the membership that has it, and wrong records are named") {
  const ManualClock clock;
  CellHosts hosts(kKeys);
  const std::string ledger = R"({"parts":[{"host":"a","incarnation":3,"concurrent":4,"as_of":1},)"
                             R"({"host":"b","incarnation":1,"concurrent":2,"as_of":1}]})";
  hosts.listed(
      {.config = {},
       .hosts = {host("a", 3, 5), host("b", 4, 6), {.key = kKeys.host({"d"}), .value = "?"}},
       .ledgers = {{.key = kKeys.ledger({"ann"}), .value = ledger},
                   {.key = kKeys.ledger({"bob"}), .value = "[]"}}},
      clock.now());
  const auto document = hosts.to_json(clock.now());
  CHECK(document.at("items").at(0).at("tenants") == 1);
  CHECK(document.at("items").at(0).at("requests") == 4);
  CHECK(document.at("items").at(1).at("tenants") == 0);
  REQUIRE(document.at("problems").size() == 2);
  CHECK_THAT(document.at("problems").dump(), Contains("ledger/bob") && Contains("hosts/d"));
}

TEST_CASE("cell reader: without etcd the error is typed, and etcd is not asked at once again") {
  ManualClock clock;
  const auto member =
      etcd::MemberAddress::parse("unix:/nonexistent/etcd", etcd::Reach::ThisMachine);
  CellReader reader({.etcd = {.members = {member.value()}}, .cell = {"c"}}, clock);
  const auto document = reader.json();
  CHECK(document.at("cell") == "c");
  CHECK(document.at("items").empty());
  CHECK(document.at("error").at("code") == "ConnectionRefused");
  CHECK(reader.metrics().contains("leasehold_monitor_etcd_up 0\n"));
}
