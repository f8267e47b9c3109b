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

TEST_CASE(
    "brokerctl: words of kubectl, systemctl and docker are answered with the command to use") {
  using Row = std::pair<std::vector<std::string>, std::string>;
  const auto [words, use] = GENERATE(
      values<Row>({{{"create", "tenant", "bob"}, "use: brokerctl tenants admit bob."},
                   {{"tenants", "add", "bob"}, "use: brokerctl tenants admit bob."},
                   {{"delete", "key", "00ff"}, "use: brokerctl keys revoke 00ff."},
                   {{"cancel", "request", "r1"}, "use: brokerctl requests cancel r1."},
                   {{"delete", "request", "a/r1"}, "use: brokerctl requests cancel a/r1."},
                   {{"kill", "a/r1"}, "use: brokerctl requests cancel a/r1."},
                   {{"cancel", "r1"}, "use: brokerctl requests cancel r1."},
                   {{"cancel", "17.4"}, "use: brokerctl revoke 17.4."},
                   {{"describe", "request", "r1"}, "use: brokerctl get request r1 -o wide."},
                   {{"tenants", "describe", "bob"}, "use: brokerctl describe tenant bob."},
                   {{"tenants", "get", "bob"}, "use: brokerctl get tenant bob."},
                   {{"edit", "key", "00ff"}, "use: brokerctl keys update 00ff."},
                   {{"keys", "rotate", "00ff"}, "has no verb 'rotate'. Verbs:"},
                   {{"workers", "wait"}, "use: brokerctl workers --wait ready."},
                   {{"delete", "17.4"}, "use: brokerctl revoke 17.4."},
                   {{"rm", "tenants", "bob"}, "use: brokerctl tenants remove bob."},
                   {{"stop", "--tenant", "x"}, "use: brokerctl revoke"},
                   {{"leases", "revoke", "17.4"}, "use: brokerctl revoke 17.4."},
                   {{"workers", "drain", "w1"}, "use: brokerctl drain --worker w1."},
                   {{"ls", "workers"}, "use: brokerctl get worker."},
                   {{"ls"}, "brokerctl get leases"},
                   {{"ps"}, "use: brokerctl top"},
                   {{"tenants", "show", "bob"}, "use: brokerctl describe tenant bob."},
                   {{"tenants", "bob"}, "use: brokerctl get tenant bob."},
                   {{"logs"}, "use: brokerctl events --follow."},
                   {{"delete", "tenant", "a;rm -rf"}, "use: brokerctl tenants remove NAME."}}));
  CAPTURE(words);
  CHECK_THAT(explanation(words), Catch::Contains(use));
}

TEST_CASE("brokerctl: get and describe without a noun, or with another one, name the nouns") {
  CHECK_THAT(explanation({"get"}), Catch::Contains("'get' needs a noun. Nouns: leases"));
  CHECK_THAT(explanation({"describe", "tenat", "a"}), Catch::Contains("did you mean 'tenant'?"));
  CHECK_THAT(explanation({"get", "pods"}), Catch::Contains("'get' has no noun 'pods'"));
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
