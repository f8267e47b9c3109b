// Lists that are limited to names, and -o name.
#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

wire::TenantView tenant_view(const char* name) {
  return {.policy = {.tenant = {name}}, .served = {.tenant = {name}}};
}

FakeBroker broker_of_tenants() {
  FakeBroker broker;
  broker.replies["tenant.list"] = {
      items<wire::TenantView>({tenant_view("alice"), tenant_view("bob"), tenant_view("carol")})};
  return broker;
}

}  // namespace

TEST_CASE("brokerctl get: lists what is named, in the singular, the plural, and after list") {
  FakeBroker broker = broker_of_tenants();
  for (const std::vector<std::string>& noun : {std::vector<std::string>{"get", "tenant"},
                                               {"get", "tenants"},
                                               {"tenants", "list"},
                                               {"tenant", "list"}}) {
    auto words = noun;
    words.insert(words.end(), {"carol", "alice"});
    REQUIRE(run_words(broker, words));
    CHECK_THAT(broker.out.str(), Catch::Contains("alice") && Catch::Contains("carol"));
    CHECK_FALSE(broker.out.str().contains("bob"));
  }
  REQUIRE(run_words(broker, {"get", "tenants"}));
  CHECK_THAT(broker.out.str(), Catch::Contains("bob"));
  REQUIRE(run_words(broker, {"get", "tenant", "bob", "-o", "json"}));
  const auto document = wire::Json::parse(broker.out.str());
  REQUIRE(document.at("items").size() == 1);
  CHECK(document.dump().contains("bob"));
}

TEST_CASE("brokerctl -o name: prints the first column only, and is refused without names") {
  FakeBroker broker = broker_of_tenants();
  REQUIRE(run_words(broker, {"tenants", "-o", "name"}));
  CHECK(broker.out.str() == "alice\nbob\ncarol\n");
  std::vector<wire::WorkerView> workers;
  for (const char* name : {"w1", "w2", "w1"})
    workers.push_back({.worker = name, .pid = 7, .state = "ready", .drain = "serving"});
  broker.replies["worker.list"] = {items(workers)};
  REQUIRE(run_words(broker, {"workers", "-o", "name"}));
  CHECK(broker.out.str() == "w1\nw2\n");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"status"},
                                                {"events"},
                                                {"actions"},
                                                {"keys", "create", "--tenant", "a"}}) {
    auto with_output = words;
    with_output.insert(with_output.end(), {"-o", "name"});
    CHECK_FALSE(parse_arguments(with_output));
  }
}

TEST_CASE("brokerctl get: a name that is not listed is an error, after those that are") {
  FakeBroker broker = broker_of_tenants();
  const auto done = run_words(broker, {"get", "tenant", "bob", "alise"});
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::UnknownTenant);
  CHECK_THAT(done.error().detail, Catch::Contains("no tenant 'alise'; did you mean 'alice'?"));
  CHECK_THAT(broker.out.str(), Catch::Contains("bob"));
  broker.replies["worker.list"] = {items<wire::WorkerView>({})};
  CHECK(run_words(broker, {"get", "worker", "w9"}).error().code == Errc::UnknownWorker);
  CHECK(broker.out.str().empty());
}

TEST_CASE("brokerctl get: a lease that is over says which lease has its slot") {
  FakeBroker broker;
  broker.replies["lease.list"] = {items({lease_view({17, 5}, LeaseState::Live)})};
  CHECK(run_words(broker, {"get", "lease", "17.5"}));
  const auto over = run_words(broker, {"get", "lease", "17.4"});
  REQUIRE_FALSE(over);
  CHECK(over.error().code == Errc::StaleGeneration);
  const auto wrong = run_words(broker, {"get", "lease", "seventeen"});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == Errc::BadRequest);
  CHECK_THAT(wrong.error().detail, Catch::Contains("17.4"));
}
