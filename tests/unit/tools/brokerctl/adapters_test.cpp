#include <catch2/catch.hpp>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

wire::AdapterView support() {
  return {.adapter = {"support"},
          .version = 2,
          .tenant = TenantId{"alice"},
          .file = "alice/support.gguf",
          .leases = {{.lease = {3, 1}, .worker = "w0", .version = 1, .filled = true},
                     {.lease = {4, 1}, .worker = "w1", .version = 2, .size_bytes = 2 << 20}}};
}

}  // namespace

TEST_CASE("brokerctl adapters: the list shows owner, memory and where each version is") {
  FakeBroker broker;
  broker.replies["adapter.list"] = {items<wire::AdapterView>({support()})};
  REQUIRE(run_words(broker, {"adapters"}));
  CHECK_THAT(broker.out.str(), Catch::Contains("support") && Catch::Contains("alice") &&
                                   Catch::Contains("2 MiB") &&
                                   Catch::Contains("w0 loaded (version 1), w1 loading"));
  const auto missing = run_words(broker, {"get", "adapter", "suport"});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Errc::UnknownAdapter);
}

TEST_CASE("brokerctl adapters: add sends owner and file, and prints the version") {
  FakeBroker broker;
  broker.replies["adapter.add"] = {wire::AdapterAdded{.version = 3}.to_json()};
  REQUIRE(run_words(broker, {"adapters", "add", "support", "--file", "a/s.gguf", "--tenant",
                             "alice", "--pinned"}));
  const auto sent = wire::AdapterAdd::from_json(broker.calls.back().second);
  REQUIRE(sent);
  CHECK(sent->tenant == TenantId{"alice"});
  CHECK(sent->file == "a/s.gguf");
  CHECK(sent->pinned);
  CHECK_FALSE(sent->shared);
  CHECK_THAT(broker.out.str(), Catch::Contains("3"));
}

TEST_CASE("brokerctl adapters: add refuses a path outside and an unclear owner") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"adapters", "add", "x", "--file", "../x", "--shared"},
        {"adapters", "add", "x", "--file", "/x", "--shared"},
        {"adapters", "add", "x", "--file", "x"},
        {"adapters", "add", "x", "--file", "x", "--shared", "--tenant", "alice"}}) {
    CAPTURE(words.back());
    CHECK_FALSE(parse_arguments(words));
  }
}

TEST_CASE("brokerctl revoke: --adapter names an adapter, and --tenant its owner") {
  FakeBroker broker;
  broker.replies["lease.revoke"] = {wire::LeasesTouched{.leases = {{3, 1}}}.to_json()};
  REQUIRE(run_words(broker, {"revoke", "--adapter", "support", "--tenant", "alice"}));
  const auto sent = wire::LeaseRevoke::from_json(broker.calls.back().second);
  REQUIRE(sent);
  CHECK(sent->adapter == AdapterName{"support"});
  CHECK(sent->tenant == TenantId{"alice"});
  CHECK_FALSE(parse_arguments(std::vector<std::string>{"revoke", "3.1", "--adapter", "support"}));
}

TEST_CASE("brokerctl tenants admit: limits of adapters may be given as sizes") {
  const auto parsed = parse_arguments(std::vector<std::string>{
      "tenants", "admit", "alice", "--max-adapters", "3", "--max-adapter-bytes", "1GiB"});
  REQUIRE(parsed);
  const auto& admit = std::get<wire::TenantAdmit>(parsed->verb);
  CHECK(admit.max_adapters == 3u);
  CHECK(admit.max_adapter_bytes == 1ull << 30);
}
