#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"
#include "tools/brokerctl/describe/history.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

wire::Json event(std::uint64_t sequence, const char* field, const char* value) {
  return {{"sequence", sequence}, {"at_boottime_ns", 1}, {"event", "something"}, {field, value}};
}

/// A broker with one tenant, one lease of it on one worker, and a few events.
FakeBroker small_broker() {
  FakeBroker broker;
  auto lease = lease_view({17, 4}, LeaseState::Fenced, "alice");
  lease.replaced_by = LeaseId{18, 1};
  broker.replies["lease.list"] = {items({lease})};
  broker.replies["tenant.list"] = {items<wire::TenantView>(
      {{.policy = {.tenant = {"alice"}}, .leases_live = 1, .served = {.tenant = {"alice"}}}})};
  broker.replies["worker.list"] = {items<wire::WorkerView>(
      {{.worker = "w", .pid = 6, .state = "gone"}, {.worker = "w", .pid = 7, .state = "ready"}})};
  broker.replies["key.list"] = {
      items<wire::KeyView>({{.key = {"0011223344556677"}, .tenant = {"alice"}},
                            {.key = {"8811223344556677"}, .tenant = {"bob"}}})};
  broker.replies["extent.list"] = {items<wire::ExtentView>(
      {{.extent = ExtentId{5}, .state = "Quarantined", .lease = LeaseId{17, 4}}})};
  broker.replies["quarantine.list"] = {
      items<wire::QuarantineView>({{.extent = ExtentId{5}, .why = "touched"}})};
  broker.replies["event.list"] = {
      wire::Json{{"items", wire::Json::array()}, {"newest", 4u}},
      wire::Json{{"items",
                  {event(1, "lease", "17.4"), event(2, "new_lease", "17.4"),
                   event(3, "tenant", "alice"), event(4, "worker", "w")}},
                 {"newest", 4u}}};
  broker.replies["operator_action.list"] = {items<wire::OperatorActionView>(
      {{.at_unix_s = 1, .action = "revoke", .object = "lease:17.4"},
       {.at_unix_s = 1, .action = "admit", .object = "tenant:alice"}})};
  return broker;
}

wire::Json described(const std::string& noun, const std::string& name) {
  FakeBroker broker = small_broker();
  REQUIRE(run_words(broker, {"describe", noun, name, "-o", "json"}));
  auto document = wire::Json::parse(broker.out.str());
  CHECK(document.at("noun") == noun);
  CHECK(document.at("name") == name);
  CHECK_FALSE(document.at("next").empty());
  return document;
}

}  // namespace

TEST_CASE("describe lease: fields, timeline, extents, events, actions and what comes next") {
  const auto lease = described("lease", "17.4");
  CHECK(lease.at("item").at("tenant") == "alice");
  CHECK(lease.at("timeline").size() > 4);
  CHECK(lease.at("extents").size() == 1);
  CHECK(lease.at("events").size() == 2);
  CHECK(lease.at("actions").at(0).at("action") == "revoke");
  CHECK(lease.at("next").dump().contains("brokerctl describe lease 18.1"));
  FakeBroker broker = small_broker();
  REQUIRE(run_words(broker, {"describe", "leases", "17.4"}));
  for (const char* part : {"REASON", "Timeline", "Extents (1)", "Newest events",
                           "Operator actions (1)", "brokerctl events --lease 17.4"})
    CHECK_THAT(broker.out.str(), Catch::Contains(part));
}

TEST_CASE("describe tenant, worker, key and extent: what belongs to each") {
  const auto tenant = described("tenant", "alice");
  CHECK(tenant.at("leases").size() == 1);
  CHECK(tenant.at("keys").size() == 1);
  CHECK(tenant.at("events").size() == 1);
  CHECK(tenant.at("actions").size() == 1);
  CHECK(tenant.at("next").dump().contains("brokerctl revoke --tenant alice --wait"));
  const auto worker = described("worker", "w");
  CHECK(worker.at("item").at("pid") == 7);  // the successor of the one that is gone
  CHECK(worker.at("events").size() == 1);
  CHECK(worker.at("next").dump().contains("brokerctl drain --worker w --wait"));
  CHECK(described("key", "8811223344556677").at("next").dump().contains("describe tenant bob"));
  const auto extent = described("extent", "5");
  CHECK(extent.at("quarantine").size() == 1);
  CHECK(extent.at("next").dump().contains("brokerctl quarantine release extent:5"));
}

TEST_CASE("describe adapter: its version, and the leases of every version") {
  FakeBroker broker = small_broker();
  auto memory = lease_view({19, 1}, LeaseState::Live, "alice");
  memory.scope = wire::LeaseScope::Adapter;
  memory.part = "support@1";
  auto of_another = memory;
  of_another.part = "support-2@1";
  broker.replies["lease.list"] = {items({memory, of_another})};
  wire::AdapterView adapter{.adapter = {"support"}, .version = 2, .file = "s.gguf"};
  adapter.tenant = TenantId{"alice"};
  adapter.leases = {{.lease = {19, 1}, .worker = "w", .version = 1}};
  broker.replies["adapter.list"] = {items<wire::AdapterView>({adapter})};
  REQUIRE(run_words(broker, {"describe", "adapter", "support", "-o", "json"}));
  const auto document = wire::Json::parse(broker.out.str());
  CHECK(document.at("item").at("version") == 2);
  CHECK(document.at("leases").size() == 1);
  CHECK(document.at("next").dump().contains("brokerctl revoke --adapter support"));
  CHECK(run_words(broker, {"describe", "adapter", "x"}).error().code == Errc::UnknownAdapter);
}

TEST_CASE("describe: an unknown name is the error of its noun, with the nearest name") {
  FakeBroker broker = small_broker();
  const auto tenant = run_words(broker, {"describe", "tenant", "alise"});
  REQUIRE_FALSE(tenant);
  CHECK(tenant.error().code == Errc::UnknownTenant);
  CHECK_THAT(tenant.error().detail, Catch::Contains("did you mean 'alice'?"));
  CHECK(run_words(broker, {"describe", "worker", "x"}).error().code == Errc::UnknownWorker);
  CHECK(run_words(broker, {"describe", "lease", "17.9"}).error().code == Errc::UnknownLease);
  CHECK(run_words(broker, {"describe", "lease", "17"}).error().code == Errc::BadRequest);
  CHECK(broker.out.str().empty());
}

TEST_CASE("describe: a broker without --state-dir has no operator actions") {
  FakeBroker broker = small_broker();
  broker.replies["operator_action.list"] = {fail(Errc::BadRequest, "no --state-dir")};
  REQUIRE(run_words(broker, {"describe", "tenant", "alice"}));
  CHECK_FALSE(broker.out.str().contains("Operator actions"));
}

TEST_CASE("describe: an observer sees neither keys nor operator actions") {
  FakeBroker broker = small_broker();
  for (const char* method : {"operator_action.list", "key.list"})
    broker.replies[method] = {fail(Errc::PermissionDenied, "an observer")};
  REQUIRE(run_words(broker, {"describe", "tenant", "alice"}));
  CHECK_THAT(broker.out.str(), Catch::Contains("Leases (1)"));
  CHECK_FALSE(broker.out.str().contains("API keys"));
}

TEST_CASE("describe: only the newest events are read, in calls that advance") {
  FakeBroker broker;
  const wire::Json empty = wire::Json::array();
  broker.replies["event.list"] = {wire::Json{{"items", empty}, {"newest", 9000u}}};
  const auto events = newest_events("tenant", "alice", broker.dependencies());
  REQUIRE(events);
  CHECK(events->empty());
  REQUIRE(broker.calls.size() == 2);
  CHECK(broker.calls.at(1).second.at("after") == 5000);
}
