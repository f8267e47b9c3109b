#include "tools/brokerctl/run.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

Result<void> run_verb(FakeBroker& broker, Verb verb, Output output = Output::Table) {
  return run({.output = output, .verb = std::move(verb)}, broker.dependencies());
}

}  // namespace

TEST_CASE("brokerctl: status shows memory in units for people") {
  FakeBroker broker;
  const wire::StatusView status{
      .capacity_bytes = 256u << 20, .free_bytes = 256u << 20, .isolation = "same-user"};
  broker.answers["status"] = {status.to_json()};

  REQUIRE(run_verb(broker, ShowStatus{}));

  CHECK(broker.out.str().find("256 MiB") != std::string::npos);
  CHECK(broker.out.str().find("same-user") != std::string::npos);
}

TEST_CASE("brokerctl: json is one document that can be read back") {
  FakeBroker broker;
  broker.answers["lease.list"] = {items({lease_view({1, 1}, LeaseState::Live)})};

  REQUIRE(run_verb(broker, ListLeases{}, Output::Json));

  const auto document = wire::Json::parse(broker.out.str());
  CHECK(document.at("items").size() == 1);
  CHECK(wire::LeaseView::from_json(document.at("items").at(0))->lease == LeaseId{1, 1});
}

TEST_CASE(
    "brokerctl: all pages of leases are one list, and a list that does not get on is refused") {
  FakeBroker broker;
  wire::Json first = items({lease_view({1, 1}, LeaseState::Live)});
  first["more"] = true;
  broker.answers["lease.list"] = {first, items({lease_view({7, 3}, LeaseState::Live)})};

  REQUIRE(run_verb(broker, ListLeases{}));

  CHECK(broker.out.str().find("1.1") != std::string::npos);
  CHECK(broker.out.str().find("7.3") != std::string::npos);
  CHECK(broker.asked.at(1).second == wire::Json{{"after", 1}});
  broker.answers["lease.list"] = {first};
  CHECK(run_verb(broker, ListLeases{}).error().code == Errc::MalformedMessage);
}

namespace {

template <class View>
wire::Json page(const View& view, bool more) {
  return {{"items", wire::Json::array({view.to_json()})}, {"more", more}};
}

}  // namespace

TEST_CASE("brokerctl: tenants, extents and fences are read page after page too") {
  FakeBroker broker;
  const auto tenant = [](const char* name) {
    return wire::TenantView{.policy = {.tenant = {name}}};
  };
  broker.answers["tenant.list"] = {page(tenant("acme"), true), page(tenant("zoo"), false)};
  broker.answers["extent.list"] = {
      page(wire::ExtentView{.extent = ExtentId{5}, .state = "Owned"}, true),
      page(wire::ExtentView{.extent = ExtentId{17}, .state = "Owned"}, false)};
  broker.answers["quarantine.list"] = {
      page(wire::QuarantineView{.extent = ExtentId{9}, .why = "touched"}, true),
      page(wire::QuarantineView{.region = RegionId{3}, .why = "touched"}, true),
      page(wire::QuarantineView{.region = RegionId{4}, .why = "touched"}, false)};

  REQUIRE(run_verb(broker, ListTenants{}));
  REQUIRE(run_verb(broker, ListExtents{}));
  REQUIRE(run_verb(broker, ListQuarantine{}));

  for (const char* word : {"acme", "zoo", " 5 ", " 17 ", "extent:9", "region:3", "region:4"}) {
    CHECK(broker.out.str().find(word) != std::string::npos);
  }
  CHECK(broker.asked.at(1).second == wire::Json{{"after", "acme"}});
  CHECK(broker.asked.at(3).second == wire::Json{{"after", "5"}});
  CHECK(broker.asked.at(5).second == wire::Json{{"after_extent", "9"}});
  CHECK(broker.asked.at(6).second == wire::Json{{"after_region", "3"}});
  broker.answers["extent.list"] = {
      page(wire::ExtentView{.extent = ExtentId{5}, .state = "Owned"}, true)};
  CHECK(run_verb(broker, ListExtents{}).error().code == Errc::MalformedMessage);
}

TEST_CASE("brokerctl: leases are narrowed down by tenant and state") {
  FakeBroker broker;
  broker.answers["lease.list"] = {
      items({lease_view({1, 1}, LeaseState::Live, "A"), lease_view({2, 1}, LeaseState::Fenced, "A"),
             lease_view({3, 1}, LeaseState::Fenced, "B")})};

  REQUIRE(run_verb(broker, ListLeases{.tenant = TenantId{"A"}, .state = LeaseState::Fenced}));

  CHECK(broker.out.str().find("2.1") != std::string::npos);
  CHECK(broker.out.str().find("1.1 ") == std::string::npos);
  CHECK(broker.out.str().find("3.1") == std::string::npos);
}

TEST_CASE("brokerctl: the broker's refusal comes through with its code") {
  FakeBroker broker;
  broker.answers["lease.revoke"] = {fail(Errc::UnknownLease, "no lease 9.9")};

  const auto done = run_verb(broker, Revoke{.message = {.lease = LeaseId{9, 9}}});

  REQUIRE_FALSE(done);
  CHECK(done.error() == Error{Errc::UnknownLease, "no lease 9.9"});
  CHECK(broker.out.str().empty());
}

TEST_CASE("brokerctl: an answer that does not fit is malformed, not the user's fault") {
  FakeBroker broker;
  broker.answers["status"] = {wire::Json{{"capacity_bytes", "much"}}};
  broker.answers["worker.list"] = {wire::Json::array()};
  broker.answers["event.list"] = {wire::Json{{"items", {1, 2}}, {"oldest", 1}, {"newest", 2}}};

  CHECK(run_verb(broker, ShowStatus{}).error().code == Errc::MalformedMessage);
  CHECK(run_verb(broker, ListWorkers{}).error().code == Errc::MalformedMessage);
  CHECK(run_verb(broker, ListEvents{}).error().code == Errc::MalformedMessage);
}

TEST_CASE("brokerctl: admit sends what was typed") {
  FakeBroker broker;
  broker.answers["tenant.admit"] = {wire::Json::object()};

  REQUIRE(run_verb(broker, wire::TenantAdmit{.tenant = {"A"}, .request_id = {"r1"}}));

  REQUIRE(broker.asked.size() == 1);
  CHECK(broker.asked[0].second.at("tenant") == "A");
  CHECK(broker.asked[0].second.at("request_id") == "r1");
}

TEST_CASE("brokerctl: fences are listed with why nobody gets them") {
  FakeBroker broker;
  const wire::QuarantineView fence{.extent = ExtentId{5},
                                   .lease = LeaseId{17, 4},
                                   .worker = "w0",
                                   .since_boottime_ns = 1'500'000'000,
                                   .size_bytes = 2u << 20,
                                   .why = "4096 bytes were written after it was taken back"};
  broker.answers["quarantine.list"] = {wire::Json{{"items", wire::Json::array({fence.to_json()})}}};

  REQUIRE(run_verb(broker, ListQuarantine{}));

  for (const char* word : {"extent:5", "17.4", "w0", "1.500000", "2 MiB", "4096 bytes"}) {
    CHECK(broker.out.str().find(word) != std::string::npos);
  }
}

TEST_CASE("brokerctl: release_quarantine sends the reason and shows what is free again") {
  FakeBroker broker;
  broker.answers["quarantine.release"] = {
      wire::QuarantineReleased{.size_bytes = 2u << 20}.to_json()};

  REQUIRE(run_verb(broker, wire::QuarantineRelease{
                               .extent = ExtentId{5}, .reason = "looked at", .request_id = {"r"}}));

  CHECK(broker.asked.at(0).second.at("reason") == "looked at");
  CHECK(broker.out.str().find("2 MiB") != std::string::npos);
}

TEST_CASE("brokerctl: what lost workers hold is told beside the sum") {
  FakeBroker broker;
  const wire::StatusView status{
      .capacity_bytes = 256u << 20, .unproven_bytes = 9u << 20, .isolation = "same-user"};
  broker.answers["status"] = {status.to_json()};

  REQUIRE(run_verb(broker, ShowStatus{}));

  CHECK(broker.out.str().find("9 MiB") != std::string::npos);
}

TEST_CASE("brokerctl: leases say that they drain, and that a holder was told before the flip") {
  FakeBroker broker;
  wire::LeaseView draining = lease_view({1, 1}, LeaseState::Live);
  draining.drain_deadline_boottime_ns = 5;
  wire::LeaseView told = lease_view({2, 1}, LeaseState::Revoked);
  told.clocks = {};
  told.times.worker_stopped_boottime_ns = 7;
  broker.answers["lease.list"] = {items({draining, told})};

  REQUIRE(run_verb(broker, ListLeases{}));

  CHECK(broker.out.str().find("Live, draining") != std::string::npos);
  CHECK(broker.out.str().find("before flip") != std::string::npos);
}

TEST_CASE("brokerctl: the audit shows who did what, and what was refused") {
  FakeBroker broker;
  wire::OperatorActionView done{
      .at_unix_s = 1'700'000'000, .uid = 7, .action = "drain", .object = "lease:1.1"};
  done.done = true;
  wire::OperatorActionView refused{
      .uid = 8, .action = "quarantine_release", .object = "extent:5", .reason = "looked at"};
  refused.done = false;
  broker.answers["operator_action.list"] = {
      wire::Json{{"items", wire::Json::array({done.to_json(), refused.to_json()})}}};

  REQUIRE(run_verb(broker, ListOperatorActions{.limit = 2}));

  CHECK(broker.asked.at(0).second == wire::Json{{"limit", 2}});
  for (const char* word : {"1700000000", "lease:1.1", "yes", "extent:5", "refused", "looked at"}) {
    CHECK(broker.out.str().find(word) != std::string::npos);
  }
}
