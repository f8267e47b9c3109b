#include "tests/checks/attack/outcome.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace leasehold::attack {

TEST_CASE("attack outcome: tokens, results, errors and ends are counted by kind") {
  Outcome outcome;
  count_line(outcome, R"({"jsonrpc":"2.0","method":"token.emitted","params":{"token":7}})");
  count_line(outcome, R"({"id":1,"jsonrpc":"2.0","result":{}})");
  count_line(outcome,
             R"({"error":{"code":-32000,"data":{"code":"QueueFull"},"message":"m"},"id":1})");
  count_line(outcome,
             R"({"jsonrpc":"2.0","method":"request.completed","params":{"reason":"Revoked"}})");
  count_line(outcome, "garbage");
  CHECK(outcome.tokens == 1);
  CHECK(outcome.replies == std::map<std::string, std::uint64_t>{
                               {"ok", 1}, {"QueueFull", 1}, {"ended Revoked", 1}, {"not JSON", 1}});
}

TEST_CASE("attack outcome: of an answer over HTTP the status counts") {
  Outcome outcome;
  for (const char* line : {"HTTP/1.1 413 Payload Too Large\r", "Content-Length: 2\r", "\r"})
    count_line(outcome, line);
  CHECK(outcome.replies == std::map<std::string, std::uint64_t>{{"HTTP 413", 1}});
}

TEST_CASE("attack outcome: text of a model cannot pass for a token") {
  Outcome outcome;
  count_line(
      outcome,
      R"({"id":1,"jsonrpc":"2.0","result":{"params":"x","text":"\"method\":\"token.emitted\""}})");
  CHECK(outcome.tokens == 0);
}

TEST_CASE("attack outcome: a report is read back, and outcomes add up") {
  const Outcome outcome{.runs = 1,
                        .connections = 2,
                        .refused_connections = 3,
                        .closed_connections = 4,
                        .bytes_sent = 5,
                        .tokens = 6,
                        .replies = {{"ok", 7}}};
  const AttackerReport report{.cpu_ns = 8, .attacks = {{"long lines", outcome}}};
  const auto read = attacker_report_from_text(to_json(report).dump());
  REQUIRE(read);
  CHECK(read->cpu_ns == 8);
  CHECK(read->attacks.at("long lines") == outcome);

  Outcome sum = outcome;
  sum.add(outcome);
  CHECK(sum.runs == 2);
  CHECK(sum.tokens == 12);
  CHECK(sum.replies.at("ok") == 14);
  CHECK(attacker_report_from_text("{}").error().code == Errc::MalformedMessage);
}

}  // namespace leasehold::attack
