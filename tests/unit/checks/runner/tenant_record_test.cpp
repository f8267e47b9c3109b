#include "tests/checks/runner/tenant_record.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace leasehold::runner;

TEST_CASE("tenant record: parses a complete output") {
  TenantRecord record{.name = "B"};
  for (const char* line :
       {R"({"event":"acquired","lease":"1.1","at_boottime_ns":1})",
        R"({"event":"token","position":0,"token":7,"text":"a"})",
        R"({"event":"revoked","lease":"1.1","reason":"operator","emitted_tokens":1})",
        R"({"event":"acquired","lease":"2.1"})", R"({"event":"rebound"})",
        R"({"event":"token","position":1,"token":8,"text":"b"})",
        R"({"event":"completed","reason":"MaxTokensReached"})"}) {
    REQUIRE(note(record, line));
  }

  CHECK(record.leases == std::vector<LeaseId>{{1, 1}, {2, 1}});
  CHECK(record.tokens == std::vector<std::int32_t>{7, 8});
  CHECK(record.text == "ab");
  REQUIRE(record.revocations.size() == 1);
  CHECK(record.revocations[0].reason == "operator");
  CHECK(record.completed == "MaxTokensReached");
  CHECK_FALSE(record.failed);
}

TEST_CASE("tenant record: a malformed line is an error") {
  TenantRecord record{.name = "A"};

  for (const char* line : {"", "{", "[]", "7", R"({"event":7})", R"({"event":"token"})",
                           R"({"event":"acquired","lease":"x"})",
                           R"({"event":"token","position":-1,"token":1,"text":""})"}) {
    INFO(line);
    CHECK_FALSE(note(record, line));
  }
}

TEST_CASE("tenant record: a repeated position is an error") {
  TenantRecord record{.name = "A"};
  REQUIRE(note(record, R"({"event":"token","position":0,"token":7,"text":"a"})"));

  CHECK_FALSE(note(record, R"({"event":"token","position":0,"token":7,"text":"a"})"));
}

TEST_CASE("line buffer: returns complete lines for any split of the bytes") {
  LineBuffer lines;
  lines.append("ab");
  CHECK_FALSE(lines.next());
  lines.append("c\n\nde");
  CHECK(lines.next() == "abc");
  CHECK(lines.next() == "");
  CHECK_FALSE(lines.next());
}
