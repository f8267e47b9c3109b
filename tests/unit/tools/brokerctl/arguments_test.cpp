#include "tools/brokerctl/arguments/arguments.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <vector>

using namespace leasehold;
using namespace leasehold::brokerctl;
using namespace std::string_literals;

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

TEST_CASE("brokerctl arguments: a noun lists, with and without its verb list") {
  for (const auto& arguments : {parsed({"leases"}), parsed({"leases", "list"})})
    CHECK(std::holds_alternative<ListLeases>(arguments.verb));
  for (const auto& arguments : {parsed({"actions"}), parsed({"actions", "list"})})
    CHECK(std::holds_alternative<ListOperatorActions>(arguments.verb));
  const auto [noun, query] = GENERATE(table<std::string, Show>({{"extents", Show::Extents},
                                                                {"workers", Show::Workers},
                                                                {"tenants", Show::Tenants},
                                                                {"quarantine", Show::Quarantine}}));
  CHECK(std::get<Show>(parsed({noun}).verb) == query);
  CHECK(std::get<Show>(parsed({noun, "list"}).verb) == query);
}

TEST_CASE("brokerctl arguments: an option of a list may come before or after its verb") {
  CHECK(std::get<ListOperatorActions>(parsed({"actions", "--limit", "7"}).verb).limit == 7);
  CHECK(std::get<ListOperatorActions>(parsed({"actions", "list", "--limit", "7"}).verb).limit == 7);
  CHECK(std::get<ListOperatorActions>(parsed({"actions", "--limit", "7", "list"}).verb).limit == 7);
  CHECK(parsed({"leases", "list", "-o", "json"}).output == Output::Json);
  CHECK(exit_code_of({"actions", "--limit", "1001"}) == 2);
  CHECK(exit_code_of({"workers", "--limit", "7"}) == 2);
}

TEST_CASE("brokerctl arguments: tenants admit carries every limit") {
  const auto arguments = parsed({"tenants",    "admit",          "A",   "--max-concurrent",
                                 "4",          "--max-blocks",   "99",  "--reserved-blocks",
                                 "9",          "--weight",       "7",   "--tier",
                                 "guaranteed", "--ttl-ms",       "500", "--rebinds-per-minute",
                                 "30",         "--rebind-burst", "3",   "--uid",
                                 "0",          "--request-id",   "r1",  "--tokens-per-minute",
                                 "700"});

  const auto& admit = std::get<wire::TenantAdmit>(arguments.verb);
  CHECK(admit.tenant.value == "A");
  CHECK(admit.max_concurrent == 4);
  CHECK(admit.max_blocks == 99);
  CHECK(admit.reserved_blocks == 9);
  CHECK(admit.weight == 7);
  CHECK(admit.tier == wire::Tier::Guaranteed);
  CHECK(admit.ttl_ms == 500);
  CHECK(admit.rebinds_per_minute == 30);
  CHECK(admit.rebind_burst == 3);
  CHECK(admit.rates.tokens_per_minute == 700u);
  CHECK(admit.uid == 0u);
  CHECK(admit.request_id.value == "r1");
}

TEST_CASE("brokerctl arguments: tenants admit carries no limit that is not given") {
  const auto admit = std::get<wire::TenantAdmit>(parsed({"tenants", "admit", "A"}).verb);

  CHECK_FALSE(admit.max_concurrent);
  CHECK_FALSE(admit.max_blocks);
  CHECK_FALSE(admit.reserved_blocks);
  CHECK_FALSE(admit.weight);
  CHECK_FALSE(admit.tier);
  CHECK_FALSE(admit.ttl_ms);
  CHECK_FALSE(admit.uid);
  CHECK(exit_code_of({"tenants", "admit", "A", "--uid", "-1"}) == 2);
  CHECK(exit_code_of({"tenants", "admit", "A", "--max-blocks", "4294967297"}) == 2);
}

TEST_CASE("brokerctl arguments: tenants remove revokes only when asked") {
  const auto remove =
      std::get<wire::TenantRemove>(parsed({"tenants", "remove", "A", "--request-id", "r1"}).verb);
  CHECK(remove.tenant.value == "A");
  CHECK(remove.request_id.value == "r1");
  CHECK_FALSE(remove.revoke);
  CHECK(std::get<wire::TenantRemove>(parsed({"tenants", "remove", "A", "--revoke"}).verb).revoke);
  CHECK(exit_code_of({"tenants", "remove"}) == 2);
}

TEST_CASE("brokerctl arguments: an operator action without a request id gets a new one") {
  const auto first = std::get<Revoke>(parsed({"revoke", "17.4"}).verb);
  const auto second = std::get<Revoke>(parsed({"revoke", "17.4"}).verb);

  CHECK(first.message.lease == LeaseId{17, 4});
  CHECK(first.message.request_id != second.message.request_id);
}

TEST_CASE("brokerctl arguments: revoke --part names weights on one worker or on all") {
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

TEST_CASE("brokerctl arguments: an empty value never widens a command") {
  CHECK(exit_code_of({"revoke", "--part", "blk.1", "--worker", ""}) == 2);
  CHECK(exit_code_of({"leases", "--tenant", ""}) == 2);
  CHECK(exit_code_of({"leases", "--tenant="}) == 2);
  CHECK(exit_code_of({"--socket", "", "status"}) == 2);
  CHECK(exit_code_of({"--socket=", "status"}) == 2);
  CHECK(exit_code_of({"--socket", std::string(108, 'x'), "status"}) == 2);
  CHECK(parse_arguments(std::vector<std::string>{"--socket=", "status"}).error().text ==
        "--socket: the value '' is empty; give one, or leave it out");
}

TEST_CASE("brokerctl arguments: help shows the defaults") {
  const auto help = [](const std::vector<std::string>& words) {
    return parse_arguments(words).error().text;
  };
  CHECK_THAT(help({"revoke", "--help"}), Catch::Contains("30000"));
  CHECK_THAT(help({"actions", "--help"}), Catch::Contains("100"));
  CHECK_THAT(help({"tenants", "admit", "--help"}), Catch::Contains("new tenant: 1024"));
}

TEST_CASE("brokerctl arguments: an option may come before or after the verb") {
  CHECK(parsed({"-o", "json", "status"}).output == Output::Json);
  CHECK(parsed({"status", "-o", "json"}).output == Output::Json);
  CHECK(parsed({"--socket", "/x", "status"}).socket == "/x");
  CHECK_FALSE(parsed({"status"}).socket);
}

TEST_CASE("brokerctl arguments: leases are filtered by tenant and state") {
  const auto list =
      std::get<ListLeases>(parsed({"leases", "--tenant", "B", "--state", "fenced"}).verb);

  CHECK(list.tenant == TenantId{"B"});
  CHECK(list.state == LeaseState::Fenced);
}

TEST_CASE("brokerctl arguments: drain names a lease or a tenant") {
  const auto verb = std::get<Drain>(parsed({"drain", "--tenant", "B", "--grace-ms", "0"}).verb);
  const wire::LeaseDrain& drain = verb.message;

  CHECK(drain.tenant == TenantId{"B"});
  CHECK_FALSE(drain.lease);
  CHECK(drain.grace_ms == 0);
  CHECK_FALSE(verb.wait);
  const auto worker = std::get<Drain>(parsed({"drain", "--worker", "w1", "--wait"}).verb);
  CHECK(worker.message.worker == "w1");
  CHECK(worker.wait);
  CHECK(exit_code_of({"drain", "--worker", "w1", "--tenant", "B"}) == 2);
  CHECK(exit_code_of({"drain", "1.1", "--worker", "w1"}) == 2);
}

TEST_CASE("brokerctl arguments: undrain names a tenant or a worker") {
  const auto tenant = std::get<wire::LeaseUndrain>(parsed({"undrain", "--tenant", "B"}).verb);
  CHECK(tenant.tenant == TenantId{"B"});
  const auto worker = std::get<wire::LeaseUndrain>(parsed({"undrain", "--worker", "w1"}).verb);
  CHECK(worker.worker == "w1");
  CHECK_FALSE(worker.tenant);
  CHECK(exit_code_of({"undrain"}) == 2);
  CHECK(exit_code_of({"undrain", "--worker", "w1", "--tenant", "B"}) == 2);
}

TEST_CASE("brokerctl arguments: wrong usage exits with 2 and an explanation") {
  CHECK(exit_code_of({}) == 2);
  CHECK(exit_code_of({"dance"}) == 2);
  CHECK(exit_code_of({"revoke"}) == 2);
  CHECK(exit_code_of({"revoke", "not-a-lease"}) == 2);
  CHECK(exit_code_of({"revoke", "1.1", "--tenant", "A"}) == 2);
  CHECK(exit_code_of({"tenants", "admit"}) == 2);
  CHECK(exit_code_of({"tenants", "admit", "A B"}) == 2);
  CHECK(exit_code_of({"tenants", "admit", "A", "--weight", "0"}) == 2);
  CHECK(exit_code_of({"tenants", "admit", "A", "--rebind-burst", "0"}) == 2);
  CHECK(exit_code_of({"events", "--limit", "0"}) == 2);
  CHECK(exit_code_of({"timeline"}) == 2);
  CHECK(exit_code_of({"timeline", "x"}) == 2);
  CHECK(exit_code_of({"status", "-o", "xml"}) == 2);
}

TEST_CASE("brokerctl arguments: an error names the option and its value") {
  const auto says = [](std::vector<std::string> words, const std::string& text) {
    CHECK_THAT(parse_arguments(words).error().text, Catch::Contains(text));
  };
  says({"tenants", "admit", "a b"}, "tenant: 'a b' is not a name");
  says({"tenants", "admit", "A", "--uid", "4294967296"},
       "--uid: Value 4294967296 not in range 0 to 4294967295");
  says({"drain", "--worker", "a b"}, "--worker: 'a b' is not a name");
  says({"leases", "--tenant", std::string(65, 'x')}, "--tenant: a name has 1 to 64 characters");
  says({"status"s, "--socket"s, ""s}, "--socket: the value '' is empty");
  says({"undrain", "--tenant", "A", "--request-id", "a/b"}, "--request-id: 'a/b' is not a name");
  says({"revoke", "abc"}, "'abc' is not a lease");
}

TEST_CASE("brokerctl arguments: without a target the error lists every way to name one") {
  const auto says = [](const std::string& verb, const std::string& text) {
    CHECK_THAT(parse_arguments(std::vector{verb}).error().text, Catch::Contains(text));
  };
  says("revoke", "name a lease, or use --tenant or --part");
  says("drain", "name a lease, or use --tenant or --worker");
  says("undrain", "use --tenant or --worker");
}

TEST_CASE("brokerctl arguments: help says what a verb shows and when a drain ends") {
  const auto help = [](const std::vector<std::string>& words) {
    return parse_arguments(words).error().text;
  };
  CHECK_THAT(help({"status", "--help"}), Catch::Contains("max of the four clocks"));
  CHECK_THAT(help({"drain", "--help"}), Catch::Contains("a new process of its name serves again") &&
                                            Catch::Contains("--timeout-ms"));
  CHECK_THAT(help({"actions", "--help"}), Catch::Contains("needs a broker with --state-dir"));
  CHECK(std::get<Drain>(parsed({"drain", "1.1", "--wait", "--timeout-ms", "7"}).verb).timeout_ms ==
        7);
}

TEST_CASE("brokerctl arguments: a count has digits only and fits 64 bits") {
  const auto count = GENERATE("-1", "+1", "1.5", "0x10", "", "18446744073709551616");

  CHECK(exit_code_of({"events", "--after", count}) == 2);
  CHECK(std::holds_alternative<ListEvents>(
      parsed({"events", "--after", "18446744073709551615"}).verb));
}

TEST_CASE("brokerctl arguments: help exits with 0") {
  CHECK(exit_code_of({"--help"}) == 0);
  CHECK(exit_code_of({"revoke", "--help"}) == 0);
  CHECK(exit_code_of({"tenants", "--help"}) == 0);
  CHECK(exit_code_of({"tenants", "admit", "--help"}) == 0);
}

TEST_CASE("brokerctl arguments: the help of a noun lists its verbs") {
  const auto help = parse_arguments(std::vector<std::string>{"tenants", "--help"});
  REQUIRE_FALSE(help);
  CHECK(help.error().text.find("Verbs:\n  list ") != std::string::npos);
  CHECK(help.error().text.find("\n  admit ") != std::string::npos);
}

TEST_CASE("brokerctl arguments: wrong usage keeps the requested format") {
  const std::vector<std::string> words{"-o", "json", "revok"};
  CHECK(parse_arguments(words).error().output == Output::Json);
  CHECK(parse_arguments(std::vector<std::string>{"revoke", "--output=json"}).error().output ==
        Output::Json);
  CHECK(parse_arguments(std::vector<std::string>{"revok"}).error().output == Output::Table);
}

TEST_CASE("brokerctl arguments: the version exits with 0") {
  CHECK(exit_code_of({"--version"}) == 0);
  CHECK(parse_arguments(std::vector<std::string>{"--version"}).error().text.find("brokerctl 0.") ==
        0);
}

TEST_CASE("brokerctl arguments: quarantine release takes an extent or a region, and a reason") {
  const auto release = [](const std::string& memory) {
    return std::get<wire::QuarantineRelease>(
        parsed({"quarantine", "release", memory, "--reason", "inspected"}).verb);
  };

  CHECK(release("extent:5").extent == ExtentId{5});
  CHECK(release("5").extent == ExtentId{5});
  CHECK(release("region:3").region == RegionId{3});
  CHECK_FALSE(release("region:3").extent);
  CHECK(release("5").reason == "inspected");
  CHECK_FALSE(release("5").request_id.value.empty());
  CHECK(exit_code_of({"quarantine", "release", "5"}) == 2);
  CHECK(exit_code_of({"quarantine", "release", "5", "--reason", ""}) == 2);
  CHECK(exit_code_of({"quarantine", "release", "5", "--reason", std::string(201, 'r')}) == 2);
  const auto too_long = parse_arguments(
      std::vector{"quarantine"s, "release"s, "5"s, "--reason"s, std::string(201, 'r')});
  CHECK_THAT(too_long.error().text,
             Catch::Contains("--reason: expected 1 to 200 bytes on one line") &&
                 !Catch::Contains("field"));
  CHECK(exit_code_of({"quarantine", "release", "page:5", "--reason", "r"}) == 2);
  CHECK(exit_code_of({"quarantine", "release", "extent:5x", "--reason", "r"}) == 2);
}

TEST_CASE("brokerctl arguments: watch --steps has a bounded interval and no filters") {
  const auto steps = std::get<WatchSteps>(parsed({"watch", "--steps", "--limit", "3"}).verb);
  CHECK(steps.message.interval_ms == 100);
  CHECK(steps.limit == 3);
  CHECK(std::get<WatchSteps>(parsed({"watch", "--steps", "--interval-ms", "60000"}).verb)
            .message.interval_ms == 60'000);
  CHECK(exit_code_of({"watch", "--steps", "--interval-ms", "9"}) == 2);
  CHECK(exit_code_of({"watch", "--steps", "--interval-ms", "60001"}) == 2);
  CHECK(exit_code_of({"watch", "--interval-ms", "100"}) == 2);
  CHECK(exit_code_of({"watch", "--steps", "--tenant", "A"}) == 2);
  CHECK(exit_code_of({"watch", "--steps", "--lease", "1.1"}) == 2);
  CHECK(exit_code_of({"watch", "--steps", "--after", "1"}) == 2);
  CHECK(exit_code_of({"events", "--steps"}) == 2);
}

TEST_CASE("brokerctl arguments: watch starts now, events at the oldest") {
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

TEST_CASE("brokerctl arguments: tokens per minute are 1 or more") {
  CHECK_FALSE(
      std::get<wire::TenantAdmit>(parsed({"tenants", "admit", "A"}).verb).rates.tokens_per_minute);
  for (const char* bad : {"0", "-1", "10000001", "many"})
    CHECK(exit_code_of({"tenants", "admit", "A", "--tokens-per-minute", bad}) == 2);
}

TEST_CASE("brokerctl arguments: a tenant's leases may have a longest lifetime") {
  const auto admit = std::get<wire::TenantAdmit>(
      parsed({"tenants", "admit", "A", "--max-lifetime-ms", "60000"}).verb);
  CHECK(admit.max_lifetime_ms == 60'000);
  CHECK_FALSE(std::get<wire::TenantAdmit>(parsed({"tenants", "admit", "A"}).verb).max_lifetime_ms);
  CHECK(exit_code_of({"tenants", "admit", "A", "--max-lifetime-ms", "99"}) == 2);
}
