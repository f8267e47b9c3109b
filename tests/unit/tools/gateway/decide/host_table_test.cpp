// What the gateway knows of its hosts: reports, silence, load, refusals.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tools/gateway/decide/host_table.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

constexpr TimePoint kBegin{1'000'000'000};
constexpr Duration kSilentAfter = std::chrono::milliseconds(1500);
constexpr HostId kHost{0};

HostTable two_hosts() {
  return *HostTable::create({"10.0.0.1:80", "10.0.0.2:80"}, kSilentAfter);
}

HostReport ready_report() {
  return {
      .name = "a", .models = {{"m", ""}}, .ready = true, .code = "", .running = 2, .waiting = 3};
}

Errc parse_error(std::string_view json) {
  const Result<HostReport> report = HostReport::parse(json);
  REQUIRE_FALSE(report.has_value());
  CHECK_FALSE(report.error().detail.empty());
  return report.error().code;
}

}  // namespace

TEST_CASE("host table: a list that is empty or names a host twice is refused") {
  CHECK(HostTable::create({}, kSilentAfter).error().code == Errc::BadRequest);
  const auto twice = HostTable::create({"a:1", "b:1", "a:1"}, kSilentAfter);
  REQUIRE_FALSE(twice.has_value());
  CHECK(twice.error().detail.contains("a:1"));
}

TEST_CASE("host table: a host is silent until it reports, late and then silent when it stops") {
  HostTable hosts = two_hosts();
  CHECK(hosts.state(kHost, kBegin) == HostState::Silent);
  CHECK(hosts.report(kHost) == nullptr);
  hosts.reported(kHost, ready_report(), kBegin);
  CHECK(hosts.state(kHost, kBegin + kSilentAfter / 2) == HostState::Ready);
  CHECK(hosts.state(kHost, kBegin + kSilentAfter / 2 + Duration{1}) == HostState::Late);
  CHECK(hosts.state(kHost, kBegin + kSilentAfter) == HostState::Late);
  CHECK(hosts.state(kHost, kBegin + kSilentAfter + Duration{1}) == HostState::Silent);
  hosts.reported(kHost, ready_report(), kBegin);
  hosts.unreachable(kHost);
  CHECK(hosts.state(kHost, kBegin) == HostState::Silent);
  CHECK(hosts.report(kHost) != nullptr);
}

TEST_CASE("host table: a draining host is not merely not ready") {
  HostTable hosts = two_hosts();
  HostReport report = ready_report();
  report.ready = false;
  report.code = "WeightsLoading";
  hosts.reported(kHost, report, kBegin);
  CHECK(hosts.state(kHost, kBegin) == HostState::NotReady);
  report.code = "Draining";
  hosts.reported(kHost, report, kBegin);
  CHECK(hosts.state(kHost, kBegin) == HostState::Draining);
}

TEST_CASE("host table: a late host that drained drains") {
  HostTable hosts = two_hosts();
  HostReport report = ready_report();
  report.ready = false;
  report.code = "Draining";
  hosts.reported(kHost, report, kBegin);
  CHECK(hosts.state(kHost, kBegin + kSilentAfter) == HostState::Draining);
}

TEST_CASE("host table: a host may be ready and asleep") {
  HostTable hosts = two_hosts();
  HostReport report = ready_report();
  report.asleep = true;
  hosts.reported(kHost, report, kBegin);
  CHECK(hosts.state(kHost, kBegin) == HostState::Asleep);
  report.ready = false;
  report.code = "Draining";
  hosts.reported(kHost, report, kBegin);
  CHECK(hosts.state(kHost, kBegin) == HostState::Draining);
}

TEST_CASE("host table: the load is what the host reports or what was started there") {
  HostTable hosts = two_hosts();
  hosts.started(kHost);
  CHECK(hosts.load(kHost, kBegin) == 1);
  hosts.reported(kHost, ready_report(), kBegin);
  CHECK(hosts.load(kHost, kBegin) == 5);
  for (int i = 0; i < 6; ++i) hosts.started(kHost);
  CHECK(hosts.load(kHost, kBegin) == 7);
  hosts.ended(kHost);
  CHECK(hosts.load(kHost, kBegin) == 6);
}

TEST_CASE("host table: of a silent host only what was started there is its load") {
  HostTable hosts = two_hosts();
  hosts.reported(kHost, ready_report(), kBegin);
  hosts.started(kHost);
  CHECK(hosts.load(kHost, kBegin + kSilentAfter) == 5);
  CHECK(hosts.load(kHost, kBegin + kSilentAfter + Duration{1}) == 1);
  hosts.unreachable(kHost);
  CHECK(hosts.load(kHost, kBegin) == 1);
}

TEST_CASE("host table: of two refusals the later end counts") {
  HostTable hosts = two_hosts();
  hosts.refused(kHost, std::chrono::seconds(3), kBegin);
  hosts.refused(kHost, std::chrono::seconds(1), kBegin);
  CHECK(hosts.refuses_until(kHost) == kBegin + std::chrono::seconds(3));
}

TEST_CASE("host table: a host that leaves the list drains, and keeps its id when it returns") {
  HostTable hosts = two_hosts();
  hosts.reported(kHost, ready_report(), kBegin);
  hosts.started(kHost);
  const auto changes = hosts.set_list({"10.0.0.3:80", "10.0.0.2:80"});
  REQUIRE(changes.has_value());
  CHECK(changes->removed == std::vector<HostId>{kHost});
  CHECK(changes->added == std::vector<HostId>{HostId{2}});
  CHECK(hosts.address(HostId{2}) == "10.0.0.3:80");
  CHECK(hosts.size() == 3);
  CHECK_FALSE(hosts.is_listed(kHost));
  CHECK(hosts.state(kHost, kBegin) == HostState::Draining);
  CHECK(hosts.started_on(kHost) == 1);
  CHECK(hosts.state(kHost, kBegin + kSilentAfter + Duration{1}) == HostState::Silent);
  const auto back = hosts.set_list({"10.0.0.1:80"});
  CHECK(back->added == std::vector<HostId>{kHost});
  CHECK(back->removed.size() == 2);
  CHECK(hosts.state(kHost, kBegin) == HostState::Ready);
}

TEST_CASE("host table: a host that has gone is forgotten after ten minutes without a request") {
  ManualClock clock;
  HostTable hosts = two_hosts();
  hosts.started(kHost);
  hosts.set_list({"10.0.0.2:80"}).value();
  const auto forgotten_after = [&](Duration duration) {
    clock.advance(duration);
    return hosts.forget_gone(clock.now());
  };
  CHECK(forgotten_after(HostTable::kKeepGone).empty());  // it runs a request
  hosts.ended(kHost);
  CHECK(forgotten_after({}).empty());
  CHECK(forgotten_after(HostTable::kKeepGone - std::chrono::seconds(1)).empty());
  hosts.started(kHost);
  CHECK(forgotten_after(std::chrono::seconds(1)).empty());
  hosts.ended(kHost);
  CHECK(forgotten_after({}).empty());
  CHECK(forgotten_after(HostTable::kKeepGone) == std::vector<HostId>{kHost});
  CHECK(forgotten_after(HostTable::kKeepGone).empty());  // the other one is in the list
  CHECK(hosts.size() == 1);
  CHECK(std::ranges::distance(hosts.ids()) == 1);
}

TEST_CASE(
    "host table: a host that was forgotten is silent for ever, and its id is not used again") {
  HostTable hosts = two_hosts();
  hosts.reported(kHost, ready_report(), kBegin);
  hosts.set_list({"10.0.0.2:80"}).value();
  (void)hosts.forget_gone(kBegin);
  REQUIRE(hosts.forget_gone(kBegin + HostTable::kKeepGone).size() == 1);
  const auto back = hosts.set_list({"10.0.0.2:80", "10.0.0.1:80"});
  REQUIRE(back->added.size() == 1);
  const HostId again = back->added.at(0);
  CHECK(again != kHost);
  CHECK(hosts.address(again) == "10.0.0.1:80");
  CHECK(hosts.report(again) == nullptr);
  hosts.reported(kHost, ready_report(), kBegin);
  hosts.refused(kHost, kSilentAfter, kBegin);
  hosts.started(kHost);
  hosts.ended(kHost);
  hosts.unreachable(kHost);
  CHECK(hosts.report(kHost) == nullptr);
  CHECK(hosts.state(kHost, kBegin) == HostState::Silent);
  CHECK(hosts.incarnation(kHost) == Incarnation{});
  CHECK_FALSE(hosts.is_listed(kHost));
  CHECK(hosts.report(again) == nullptr);
  CHECK(hosts.load(again, kBegin) == 0);
  CHECK(hosts.set_list({"10.0.0.2:80"})->removed == std::vector<HostId>{again});
}

TEST_CASE("host table: of too many hosts that have gone those gone the longest are forgotten") {
  HostTable hosts = HostTable::of_cell(kSilentAfter);
  const auto use = [&](std::size_t first, std::size_t count) {
    std::vector<CellMember> members;
    for (std::size_t i = first; i < first + count; ++i)
      members.push_back({.address = std::to_string(i), .incarnation = {i + 1}});
    hosts.set_members(members);
  };
  use(0, 2);
  use(2, HostTable::kMaxGone);
  CHECK(hosts.forget_gone(kBegin).empty());
  use(0, 0);
  const auto forgotten = hosts.forget_gone(kBegin + Duration{1});
  CHECK(forgotten == std::vector<HostId>{HostId{0}, HostId{1}});
  CHECK(hosts.size() == HostTable::kMaxGone);
}

TEST_CASE("host table: a host whose name other hosts would refuse has none for them") {
  HostTable hosts = two_hosts();
  CHECK(hosts.name_of(kHost).empty());
  HostReport report = ready_report();
  hosts.reported(kHost, report, kBegin);
  CHECK(hosts.name_of(kHost) == "a");
  for (const std::string& name :
       {std::string("a b"), std::string("a\r\nX: y"), std::string(65, 'a')}) {
    report.name = name;
    hosts.reported(kHost, report, kBegin);
    CHECK(hosts.name_of(kHost).empty());
  }
}

TEST_CASE("host table: a bad list changes nothing") {
  HostTable hosts = two_hosts();
  CHECK(hosts.set_list({}).error().code == Errc::BadRequest);
  CHECK(hosts.set_list({"c:1", "c:1"}).error().detail.contains("c:1"));
  CHECK(hosts.size() == 2);
  CHECK(hosts.is_listed(kHost));
}

TEST_CASE("host report: a whole report is read") {
  const auto report = HostReport::parse(
      R"({"host":"gpu-7","models":[{"id":"m","identity":"i"},{"id":"n"}],"ready":false,)"
      R"("code":"Draining","asleep":true,"keeps_files":false,"loads_adapters":true,"running":1,"waiting":2,"later":{"more":[]}})");
  REQUIRE(report.has_value());
  CHECK(report->name == "gpu-7");
  CHECK(report->models == std::vector<ServedModel>{{"m", "i"}, {"n", ""}});
  CHECK_FALSE(report->ready);
  CHECK(report->code == "Draining");
  CHECK(report->asleep);
  CHECK_FALSE(report->keeps_files);
  CHECK(report->loads_adapters);
  CHECK(report->running == 1);
  CHECK(report->waiting == 2);
  CHECK(report->serves("n"));
  CHECK_FALSE(report->serves("o"));
  CHECK(report->serves(""));
}

TEST_CASE("host report: a wrong field is a typed error that names it") {
  for (const char* wrong :
       {"", "[]", "{", R"({"models":[],"ready":true})", R"({"host":"","models":[],"ready":true})",
        R"({"host":"a","models":{},"ready":true})", R"({"host":"a","models":[1],"ready":true})",
        R"({"host":"a","models":[{}],"ready":true})", R"({"host":"a","models":[]})",
        R"({"host":"a","models":[],"ready":1})",
        R"({"host":"a","models":[],"ready":true,"code":1})",
        R"({"host":"a","models":[],"ready":true,"asleep":1})",
        R"({"host":"a","models":[],"ready":true,"keeps_files":"no"})",
        R"({"host":"a","models":[],"ready":true,"running":-1})",
        R"({"host":"a","models":[],"ready":true,"waiting":4294967296})"}) {
    CAPTURE(wrong);
    CHECK(parse_error(wrong) == Errc::MalformedMessage);
  }
}

TEST_CASE("host report: names and lists have limits") {
  const std::string long_name(257, 'a');
  CHECK(parse_error(R"({"host":")" + long_name + R"(","models":[],"ready":true})") ==
        Errc::MessageTooLarge);
  std::string models = R"({"id":"m"})";
  for (int i = 0; i < 256; ++i) models += R"(,{"id":"m"})";
  CHECK(parse_error(R"({"host":"a","models":[)" + models + R"(],"ready":true})") ==
        Errc::MessageTooLarge);
  CHECK(parse_error(std::string((1 << 20) + 1, ' ')) == Errc::MessageTooLarge);
  const std::string deep(100'000, '[');
  CHECK(parse_error(deep) == Errc::MalformedMessage);
}
