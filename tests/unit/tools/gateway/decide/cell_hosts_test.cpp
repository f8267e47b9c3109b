// Hosts of a cell: their doors, and what their leaving means for the table and for texts.
#include <map>

#include "tests/unit/tools/gateway/decide/gateway_case.hpp"
#include "tools/gateway/decide/cell_doors.hpp"

using namespace leasehold;
using namespace leasehold::gateway;
using namespace leasehold::gateway::testing;

namespace {

/// Three hosts of a cell.
struct CellCase : GatewayCase {
  std::vector<CellMember> members{{"a:1", {1}}, {"b:1", {2}}, {"c:1", {3}}};

  CellCase() {
    hosts = HostTable::of_cell(seconds(1000));
    hosts.set_members(members);
    for (std::uint64_t i = 0; i < 3; ++i) report(HostId{i});
  }
  /// The host leaves the cell, and may have joined again.
  void expire(HostId host, bool is_back) {
    std::vector<CellMember> left = members;
    if (is_back) {
      left[host.value].incarnation = {9};
    } else {
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(host.value));
    }
    hosts.set_members(left);
  }
};

}  // namespace

TEST_CASE("host table: a host of a cell that joins again is Silent until it reports again") {
  CellCase gateway;
  HostTable& hosts = gateway.hosts;
  const HostId a{0}, b{1}, c{2};
  hosts.refused(a, seconds(3), gateway.now);
  const auto same = hosts.set_members(gateway.members);
  CHECK((same.added.empty() && same.removed.empty() && same.renewed.empty()));
  CHECK(hosts.state(a, gateway.now) == HostState::Ready);

  const auto changes = hosts.set_members({{"a:1", {9}}, {"c:1", {3}}});
  CHECK(changes.renewed == std::vector<HostId>{a});
  CHECK(changes.removed == std::vector<HostId>{b});
  CHECK(hosts.state(a, gateway.now) == HostState::Silent);
  CHECK(hosts.state(c, gateway.now) == HostState::Ready);
  CHECK(hosts.refuses_until(a) <= gateway.now);
  CHECK(hosts.incarnation(a) == Incarnation{9});
  CHECK(hosts.incarnation(b) == Incarnation{});
  CHECK_FALSE(hosts.is_listed(b));

  CHECK(hosts.set_members({}).removed == std::vector<HostId>{a, c});
  CHECK(hosts.set_members({{"b:1", {12}}}).added == std::vector<HostId>{b});
  CHECK(hosts.size() == 3);
}

TEST_CASE("host table: a host whose beat says that it drains is Draining, however it reports") {
  CellCase gateway;
  const HostId host{0};
  gateway.members[0].is_draining = true;
  gateway.hosts.set_members(gateway.members);
  CHECK(gateway.hosts.state(host, gateway.now) == HostState::Draining);
  gateway.members[0].is_draining = false;
  gateway.hosts.set_members(gateway.members);
  CHECK(gateway.hosts.state(host, gateway.now) == HostState::Ready);
}

TEST_CASE("host table: a host has its name in the cell, also after it has left") {
  CellCase gateway;
  const HostId host{0};
  const std::string reported = gateway.hosts.report(host)->name;
  gateway.members[0].host = "h:1";
  gateway.hosts.set_members(gateway.members);
  REQUIRE(reported != "h:1");
  CHECK(gateway.hosts.name_of(host) == "h:1");
  gateway.hosts.set_members({});
  CHECK(gateway.hosts.name_of(host) == "h:1");
}

TEST_CASE("cell doors: every door of a host is a member, and each problem is named once") {
  const auto beat = [](std::int64_t created, std::string_view value) {
    return cell::SilentHosts::Seen{.incarnation = {created},
                                   .modified = {created},
                                   .since = {},
                                   .record = cell::read_host("hosts/h", value)};
  };
  const std::map<cell::HostName, cell::SilentHosts::Seen> hosts{
      {cell::HostName{"a"}, beat(5, R"({"beat":"1","ttl_ms":1000,"doors":["u:1","u:2"]})")},
      {cell::HostName{"b"},
       beat(9, R"({"beat":"1","ttl_ms":1000,"doors":["u:2"],"draining":true})")},
      {cell::HostName{"c"}, beat(3, R"({"beat":"1","ttl_ms":1000})")},
      {cell::HostName{"d"}, beat(3, "?")},
      {cell::HostName{"e"}, beat(4, R"({"beat":"1","ttl_ms":1000,"doors":["u:3","u:3"]})")}};
  const CellDoors doors = doors_of(hosts);
  CHECK(doors.members == std::vector<CellMember>{{"u:1", {5}, false, "a"},
                                                 {"u:2", {9}, true, "b"},
                                                 {"u:3", {4}, false, "e"}});
  REQUIRE(doors.problems.size() == 3);
  CHECK(doors.problems[0].contains("hosts a and b name the door u:2; it is that of b"));
  CHECK(doors.problems[1].contains("host c names no door"));
  CHECK(doors.problems[2].contains("hosts/h"));
}

TEST_CASE(
    "text: nothing of a host that has left its cell is forwarded, and the text moves at once") {
  const bool is_back = GENERATE(false, true);
  CellCase gateway;
  const AttemptId first = gateway.begin();
  const HostId host = gateway.opened.host;
  gateway.bytes(first, group(0, 0, 5));
  gateway.expire(host, is_back);
  if (is_back) gateway.report(host);
  SECTION("its next bytes have arrived already") {
    gateway.bytes(first, group(0, 1, 6));
  }
  SECTION("its connection is closed") {
    gateway.on(lost(first));
  }
  SECTION("nothing happens for a while") {
    gateway.on(TimerFired{});
  }
  CHECK(gateway.client == "data: 5\n\n");
  CHECK(gateway.all<CloseHost>().at(0).attempt == first);
  REQUIRE(gateway.only<OpenHost>().cause == MoveCause::Gone);
  CHECK(gateway.opened.host != host);
  CHECK(gateway.opened.emitted == EmittedTokens{{5}});
  const AttemptId next = gateway.opened.attempt;
  gateway.accept(next);
  gateway.bytes(first, group(0, 1, 6));
  gateway.bytes(next, group(0, 1, 6) + kEnding);
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\ndata: [DONE]\n\n");
}

TEST_CASE("text: a host that has joined its cell again serves like a new one") {
  CellCase gateway;
  gateway.members = {{"a:1", {1}}};
  gateway.hosts.set_members(gateway.members);
  const AttemptId first = gateway.begin();
  gateway.bytes(first, group(0, 0, 5));
  gateway.expire(HostId{0}, true);
  gateway.report(HostId{0});
  gateway.on(lost(first));
  gateway.now = gateway.now + milliseconds(600);  // a lost host is avoided for a moment
  gateway.on(TimerFired{});
  CHECK(gateway.only<OpenHost>().host == HostId{0});
  gateway.accept(gateway.opened.attempt);
  gateway.bytes(gateway.opened.attempt, group(0, 1, 6) + kEnding);
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\ndata: [DONE]\n\n");
}

TEST_CASE("text: a successor whose host leaves the cell is dropped, and the text goes on") {
  CellCase gateway;
  const AttemptId first = gateway.begin();
  const HostId host = gateway.opened.host;
  gateway.bytes(first, group(0, 0, 5));
  gateway.report(host, "Draining");
  gateway.bytes(first, ": b\n\n");
  const AttemptId next = gateway.only<OpenHost>().attempt;
  gateway.accept(next);
  gateway.expire(gateway.opened.host, false);
  gateway.bytes(next, group(0, 1, 6));
  CHECK(gateway.all<CloseHost>().at(0).attempt == next);
  CHECK(gateway.client == "data: 5\n\n");
  gateway.bytes(first, group(0, 1, 6));
  CHECK(gateway.client == "data: 5\n\ndata: 6\n\n");
}
