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

TEST_CASE("brokerctl arguments: a action without a request id gets a fresh one") {
  const auto first = std::get<Revoke>(parsed({"revoke", "17.4"}).verb);
  const auto second = std::get<Revoke>(parsed({"revoke", "17.4"}).verb);

  CHECK(first.message.lease == LeaseId{17, 4});
  CHECK(first.message.request_id != second.message.request_id);
}

TEST_CASE("brokerctl arguments: a revocation aims at a part of the weights, on one worker or all") {
  const auto everywhere = std::get<Revoke>(parsed({"revoke", "--part", "blk.1"}).verb);
  const auto there = std::get<Revoke>(parsed({"revoke", "--part", "blk.1", "--worker", "w0"}).verb);

  CHECK(everywhere.message.part == "blk.1");
  CHECK_FALSE(everywhere.message.worker);
  CHECK_FALSE(everywhere.message.lease);
  CHECK(there.message.worker == "w0");
  CHECK(exit_code_of({"revoke", "1.1", "--part", "blk.1"}) == 2);
  CHECK(exit_code_of({"revoke", "--tenant", "A", "--part", "blk.1"}) == 2);
  CHECK(exit_code_of({"revoke", "1.1", "--worker", "w0"}) == 2);
  CHECK(exit_code_of({"revoke", "--part", "two\nlines"}) == 2);
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
  CHECK(exit_code_of({"events", "--limit", "0"}) == 2);
  CHECK(exit_code_of({"timeline"}) == 2);
  CHECK(exit_code_of({"timeline", "x"}) == 2);
  CHECK(exit_code_of({"status", "-o", "xml"}) == 2);
}

TEST_CASE("brokerctl arguments: a count is made of digits and fits") {
  const auto count = GENERATE("-1", "+1", "1.5", "0x10", "", "18446744073709551616");

  CHECK(exit_code_of({"events", "--after", count}) == 2);
  CHECK(std::holds_alternative<ListEvents>(
      parsed({"events", "--after", "18446744073709551615"}).verb));
}

TEST_CASE("brokerctl arguments: help is an answer") {
  CHECK(exit_code_of({"--help"}) == 0);
  CHECK(exit_code_of({"revoke", "--help"}) == 0);
}

TEST_CASE("brokerctl arguments: a mistyped verb is named, with the nearest one") {
  const auto usage = parse_arguments(std::vector<std::string>{"--socket", "/x", "revok", "1.1"});

  REQUIRE_FALSE(usage);
  CHECK(usage.error().exit_code == 2);
  CHECK(usage.error().text.find("no verb 'revok'") != std::string::npos);
  CHECK(usage.error().text.find("Did you mean 'revoke'?") != std::string::npos);
  CHECK(usage.error().text.find("timeline") != std::string::npos);
  CHECK(parse_arguments(std::vector<std::string>{"zzz"}).error().text.find("mean") ==
        std::string::npos);
}

TEST_CASE("brokerctl arguments: wrong usage knows that JSON was asked for") {
  const std::vector<std::string> words{"-o", "json", "revok"};
  CHECK(parse_arguments(words).error().output == Output::Json);
  CHECK(parse_arguments(std::vector<std::string>{"revoke", "--output=json"}).error().output ==
        Output::Json);
  CHECK(parse_arguments(std::vector<std::string>{"revok"}).error().output == Output::Table);
}

TEST_CASE("brokerctl arguments: the version is an answer") {
  CHECK(exit_code_of({"--version"}) == 0);
  CHECK(parse_arguments(std::vector<std::string>{"--version"}).error().text.find("brokerctl 0.") ==
        0);
}

TEST_CASE("brokerctl arguments: unfence takes an extent or a region, and a reason") {
  const auto clear = [](const std::string& memory) {
    return std::get<wire::QuarantineRelease>(
        parsed({"unfence", memory, "--reason", "looked at"}).verb);
  };

  CHECK(clear("extent:5").extent == ExtentId{5});
  CHECK(clear("5").extent == ExtentId{5});
  CHECK(clear("region:3").region == RegionId{3});
  CHECK_FALSE(clear("region:3").extent);
  CHECK(clear("5").reason == "looked at");
  CHECK_FALSE(clear("5").request_id.value.empty());
  CHECK(exit_code_of({"unfence", "5"}) == 2);
  CHECK(exit_code_of({"unfence", "5", "--reason", ""}) == 2);
  CHECK(exit_code_of({"unfence", "5", "--reason", std::string(201, 'r')}) == 2);
  CHECK(exit_code_of({"unfence", "page:5", "--reason", "r"}) == 2);
  CHECK(exit_code_of({"unfence", "extent:5x", "--reason", "r"}) == 2);
}

TEST_CASE("brokerctl arguments: watch begins now, events at the beginning") {
  const auto watch = std::get<ListEvents>(parsed({"watch", "--lease", "17.4"}).verb);
  CHECK(watch.follow);
  CHECK_FALSE(watch.after);
  CHECK(watch.lease == LeaseId{17, 4});
  CHECK(std::get<ListEvents>(parsed({"watch", "--after", "7"}).verb).after == 7u);
  const auto events = std::get<ListEvents>(parsed({"events", "--tenant", "A"}).verb);
  CHECK_FALSE(events.follow);
  CHECK(events.after == 0u);
  CHECK(events.limit == 0);
  CHECK(events.tenant == TenantId{"A"});
}

TEST_CASE("brokerctl arguments: a tenant's leases may have a longest life") {
  const auto admit =
      std::get<wire::TenantAdmit>(parsed({"admit", "A", "--max-lifetime-ms", "60000"}).verb);
  CHECK(admit.max_lifetime_ms == 60'000);
  CHECK_FALSE(std::get<wire::TenantAdmit>(parsed({"admit", "A"}).verb).max_lifetime_ms);
  CHECK(exit_code_of({"admit", "A", "--max-lifetime-ms", "99"}) == 2);
}
