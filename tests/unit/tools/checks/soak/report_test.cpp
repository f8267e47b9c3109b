#include "tools/checks/soak/report.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using namespace leasehold::soak;

namespace {

RoundResult round_with(bool passed, const std::string& seen) {
  RoundResult round;
  round.counters.actions[static_cast<std::size_t>(ScriptActionKind::KillWorker)] = 3;
  round.counters.actions[static_cast<std::size_t>(ScriptActionKind::RevokeLease)] = 2;
  round.counters.leases = 10;
  round.checks = {{.promise = "bytes", .ok = passed, .seen = seen}};
  return round;
}

}  // namespace

TEST_CASE("soak summary: adds up rounds, and counts only kills as kills") {
  Summary summary(1);
  CHECK_FALSE(summary.all_passed());  // nothing was judged
  summary.add(round_with(true, "1"));
  summary.add(round_with(true, "2"));
  CHECK(summary.all_passed());
  CHECK(summary.kills() == 6);
  CHECK(summary.json()["leases_held"] == 20);
  CHECK(summary.json()["checks"][0]["seen"] == "2");
}

TEST_CASE("soak summary: one failed check in one round fails all, and its values are kept") {
  Summary summary(1);
  summary.add(round_with(true, "fine"));
  summary.add(round_with(false, "7 of 8"));
  summary.add(round_with(true, "fine again"));
  CHECK_FALSE(summary.all_passed());
  CHECK(summary.json()["ok"] == false);
  CHECK(summary.json()["checks"][0]["passed"] == 2);
  CHECK(summary.text().find("FAILED  bytes (2 of 3 rounds; the first failure: 7 of 8)") !=
        std::string::npos);
}
