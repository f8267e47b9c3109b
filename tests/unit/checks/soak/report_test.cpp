#include "tests/checks/soak/counters.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using namespace leasehold::soak;

namespace {

RoundResult round_with(bool passed, const std::string& seen) {
  RoundResult round;
  round.counters.actions[static_cast<std::size_t>(runner::ActionKind::KillWorker)] = 3;
  round.counters.actions[static_cast<std::size_t>(runner::ActionKind::RevokeLease)] = 2;
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

TEST_CASE("soak summary: too few disturbed texts fail all") {
  RoundResult round = round_with(true, "1");
  round.counters.disturbed_texts = 4;
  Summary enough(1, 4), more(1, 5);
  enough.add(round);
  more.add(round);
  CHECK(enough.all_passed());
  CHECK_FALSE(more.all_passed());
  CHECK(more.text().find("4 texts were disturbed and came whole, 5 are") != std::string::npos);
}

TEST_CASE("soak counters: a disturbed text is whole, and met more than the end of a lifetime") {
  const auto text = [](const std::string& event, const std::string& why) {
    runner::Text tenant;
    tenant.record.completed = "MaxTokensReached";
    tenant.record.reported = {{.event = event, .at = {}, .lease = {}, .why = why, .detail = ""}};
    return tenant;
  };
  CHECK(disturbed_texts({text("rebound", "preemptive"), text("token", "")}) == 0);
  CHECK(disturbed_texts({text("rebound", "failover"), text("revoked", "operator"),
                         text("retry", "ConnectionLost")}) == 3);
  runner::Text killed{.was_killed = true, .request_id = "a-0"};
  runner::Text next = text("acquired", "");
  next.request_id = "a-0";
  CHECK(disturbed_texts({killed}) == 0);
  CHECK(disturbed_texts({killed, next}) == 1);
  CHECK(disturbed_texts({next}) == 0);
  killed.request_id = next.request_id = "";
  CHECK(disturbed_texts({killed, next}) == 0);
}

TEST_CASE("soak counters: only the end of a published text counts as one") {
  runner::Text reader;
  const auto report = [&reader](const std::string& event, const std::string& scope) {
    reader.record.reported = {{.event = event, .at = {}, .why = {}, .detail = {}, .scope = scope}};
    return text_ends({reader});
  };
  CHECK(report("revoked", "shared") == 1);
  CHECK(report("revoked", "tenant") == 0);
  CHECK(report("retry", "shared") == 0);
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
