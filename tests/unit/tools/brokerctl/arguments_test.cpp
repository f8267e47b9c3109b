#include "tools/brokerctl/arguments.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <vector>

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

Arguments parsed(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  INFO((arguments ? "" : arguments.error().text));
  REQUIRE(arguments);
  return *arguments;
}

int exit_code_of(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  REQUIRE_FALSE(arguments);
  REQUIRE_FALSE(arguments.error().text.empty());
  return arguments.error().exit_code;
}

}  // namespace

TEST_CASE("brokerctl arguments: admit carries every limit") {
  const auto arguments =
      parsed({"admit", "A", "--max-concurrent", "4", "--max-blocks", "99", "--weight", "7",
              "--tier", "guaranteed", "--ttl-ms", "500", "--uid", "0", "--request-id", "r1"});

  const auto& admit = std::get<wire::TenantAdmit>(arguments.verb);
  CHECK(admit.tenant.value == "A");
  CHECK(admit.max_concurrent == 4);
  CHECK(admit.max_blocks == 99);
  CHECK(admit.weight == 7);
  CHECK(admit.tier == wire::Tier::Guaranteed);
  CHECK(admit.ttl_ms == 500);
  CHECK(admit.uid == 0u);
  CHECK(admit.request_id.value == "r1");
}

TEST_CASE("brokerctl arguments: a deed without a request id gets a fresh one") {
  const auto first = std::get<Revoke>(parsed({"revoke", "17.4"}).verb);
  const auto second = std::get<Revoke>(parsed({"revoke", "17.4"}).verb);

  CHECK(first.message.lease == LeaseId{17, 4});
  CHECK(first.message.request_id != second.message.request_id);
}

TEST_CASE("brokerctl arguments: an option may stand before or after the verb") {
  CHECK(parsed({"-o", "json", "status"}).output == Output::Json);
  CHECK(parsed({"status", "-o", "json"}).output == Output::Json);
  CHECK(parsed({"--socket", "/x", "status"}).socket == "/x");
  CHECK_FALSE(parsed({"status"}).socket);
}

TEST_CASE("brokerctl arguments: leases can be narrowed down") {
  const auto list =
      std::get<ListLeases>(parsed({"leases", "--tenant", "B", "--state", "fenced"}).verb);

  CHECK(list.tenant == TenantId{"B"});
  CHECK(list.state == LeaseState::Fenced);
}

TEST_CASE("brokerctl arguments: drain aims at a lease or a tenant") {
  const auto drain =
      std::get<wire::LeaseDrain>(parsed({"drain", "--tenant", "B", "--grace-ms", "0"}).verb);

  CHECK(drain.tenant == TenantId{"B"});
  CHECK_FALSE(drain.lease);
  CHECK(drain.grace_ms == 0);
}

TEST_CASE("brokerctl arguments: wrong usage ends with 2 and says why") {
  CHECK(exit_code_of({}) == 2);
  CHECK(exit_code_of({"dance"}) == 2);
  CHECK(exit_code_of({"revoke"}) == 2);
  CHECK(exit_code_of({"revoke", "not-a-lease"}) == 2);
  CHECK(exit_code_of({"revoke", "1.1", "--tenant", "A"}) == 2);
  CHECK(exit_code_of({"admit"}) == 2);
  CHECK(exit_code_of({"admit", "A B"}) == 2);
  CHECK(exit_code_of({"admit", "A", "--weight", "0"}) == 2);
  CHECK(exit_code_of({"events", "--limit", "1001"}) == 2);
  CHECK(exit_code_of({"status", "-o", "xml"}) == 2);
}

TEST_CASE("brokerctl arguments: help is an answer") {
  CHECK(exit_code_of({"--help"}) == 0);
  CHECK(exit_code_of({"revoke", "--help"}) == 0);
}
