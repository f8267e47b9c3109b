#include <catch2/catch.hpp>
#include <vector>

#include "tools/brokerctl/arguments.hpp"

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
  CHECK(contains(explanation({"lease"}), "did you mean 'leases'?"));
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
