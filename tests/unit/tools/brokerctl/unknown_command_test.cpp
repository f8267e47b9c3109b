#include <catch2/catch.hpp>
#include <vector>

#include "tools/brokerctl/arguments/arguments.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

/// What brokerctl says about a wrong command line.
std::string explanation(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  REQUIRE_FALSE(arguments);
  CHECK(arguments.error().exit_code == kExitUsage);
  return arguments.error().text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("brokerctl: a mistyped command is reported with the nearest one and the list") {
  const std::string text = explanation({"--socket", "/x", "revok", "1.1"});
  CHECK(contains(text, "there is no command 'revok'"));
  CHECK(contains(text, "did you mean 'revoke'?"));
  CHECK(contains(text, "timeline"));
  CHECK(contains(explanation({"leasess"}), "did you mean 'leases'?"));
  CHECK_FALSE(contains(explanation({"zzz"}), "mean"));
}

TEST_CASE("brokerctl: a mistyped verb of a noun is reported with the nearest one and the list") {
  const std::string text = explanation({"quarantine", "releas", "extent:5", "--reason", "r"});
  CHECK(contains(text, "'quarantine' has no verb 'releas'"));
  CHECK(contains(text, "did you mean 'release'?"));
  CHECK(contains(explanation({"-o", "json", "tenants", "admti", "A"}), "did you mean 'admit'?"));
  CHECK(contains(explanation({"leases", "--tenant", "A", "lsit"}), "did you mean 'list'?"));
  CHECK(contains(explanation({"workers", "zzz"}), "Verbs: list"));
}

TEST_CASE("brokerctl: a verb without its noun is answered with both") {
  CHECK(contains(explanation({"admit", "A"}), "did you mean 'tenants admit'?"));
  CHECK(contains(explanation({"release", "extent:5"}), "did you mean 'quarantine release'?"));
}

TEST_CASE("brokerctl: the value of an option is not taken for a command") {
  CHECK(parse_arguments(std::vector<std::string>{"--socket", "revok", "status"}));
  CHECK(parse_arguments(std::vector<std::string>{"leases", "--tenant", "lsit", "list"}));
}

TEST_CASE("brokerctl: options may stand before the verb, those of the verb too") {
  using Words = std::vector<std::string>;
  CHECK(parse_arguments(Words{"--broker", "/x", "workers"}).value().socket == "/x");
  CHECK(parse_arguments(Words{"--broker=/x", "workers"}).value().socket == "/x");
  CHECK(parse_arguments(Words{"--tenant", "workers", "leases"}));
  CHECK(parse_arguments(Words{"--limit=5", "-o", "json", "events"}).value().output == Output::Json);
  const auto admit = parse_arguments(Words{"--max-blocks", "64", "tenants", "admit", "a"}).value();
  CHECK(std::get<wire::TenantAdmit>(admit.verb).max_blocks == 64u);
}

TEST_CASE("brokerctl: what follows an unknown option is not called a command") {
  const std::string text = explanation({"--brokr", "/x", "workers"});
  CHECK(contains(text, "--brokr"));
  CHECK_FALSE(contains(text, "there is no command"));
}
