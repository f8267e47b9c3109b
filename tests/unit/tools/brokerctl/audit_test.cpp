#include "tools/brokerctl/audit.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

/// A broker with a chain of five records, in two pages.
struct AuditBroker : FakeBroker {
  std::vector<wire::AuditRecordView> records;
  audit::Link head;
  AuditState state;
  int exit_code = 0;

  AuditBroker() {
    for (int i = 0; i < 5; ++i) {
      const auto record =
          audit::next_record(head, {{"record", i == 2 ? "revocation" : "usage_record"},
                                    {"tenant", i < 3 ? "alice" : "bob"},
                                    {"at_unix_ms", 1'000'000 * i},
                                    {"generated_tokens", 10 + i}});
      records.push_back(
          {.sequence = record.sequence, .content = record.content, .hash = record.hash});
      head = {record.sequence, record.hash};
    }
  }
  wire::AuditPage page(std::size_t from, std::size_t to) const {
    return {.records = {records.begin() + static_cast<std::ptrdiff_t>(from),
                        records.begin() + static_cast<std::ptrdiff_t>(to)},
            .removed_hash = std::string(64, '0'),
            .head_sequence = head.sequence,
            .head_hash = head.hash,
            .head_missing_after = state.head_missing_after,
            .clock_ahead_ms = state.clock_ahead_ms};
  }
  Result<void> run_verb(Verb verb, Output output = Output::Table) {
    const std::size_t all = records.size();
    auto& prepared = replies["audit.list"];
    prepared.clear();
    if (!std::holds_alternative<ExportAudit>(verb)) prepared.push_back(page(0, 0).to_json());
    prepared.push_back(page(0, 2).to_json());
    prepared.push_back(page(2, all).to_json());
    prepared.push_back(page(0, 0).to_json());
    Dependencies with_code = dependencies();
    with_code.set_exit_code = [this](int code) { exit_code = code; };
    return run({.output = output, .verb = std::move(verb)}, with_code);
  }
};

}  // namespace

TEST_CASE("brokerctl audit verify: a sound chain is verified, and its last hash is shown") {
  AuditBroker broker;
  REQUIRE(broker.run_verb(VerifyAudit{}));
  CHECK(broker.out.str().contains(broker.head.hash));
  CHECK(broker.exit_code == 0);
  CHECK(broker.calls.at(2).second.at("after") == 2);
}

TEST_CASE("brokerctl audit verify: times when the disk was full are counted") {
  AuditBroker broker;
  const auto gap = audit::next_record(broker.head, {{"record", "audit_gap"}, {"grants", 2}});
  broker.records.push_back({.sequence = gap.sequence, .content = gap.content, .hash = gap.hash});
  broker.head = {gap.sequence, gap.hash};
  REQUIRE(broker.run_verb(VerifyAudit{}));
  CHECK(broker.out.str().contains("The disk was full 1 times"));
  CHECK(broker.exit_code == 0);
}

TEST_CASE("brokerctl audit verify: a changed record is named, with what to do, and exit code 1") {
  AuditBroker broker;
  broker.records[3].content.replace(broker.records[3].content.find("13"), 2, "12");
  REQUIRE(broker.run_verb(VerifyAudit{}));
  CHECK(broker.out.str().contains("record 4 was changed"));
  CHECK(broker.out.str().contains("backup of the state directory"));
  CHECK(broker.exit_code == 1);

  broker.out.str("");
  REQUIRE(broker.run_verb(VerifyAudit{}, Output::Json));
  const auto document = wire::Json::parse(broker.out.str());
  CHECK(document.at("findings") == 1);
  CHECK(document.at("listed").at(0).at("sequence") == 4);
}

TEST_CASE("brokerctl audit verify: it says what VERIFIED does not prove") {
  AuditBroker broker;
  REQUIRE(broker.run_verb(VerifyAudit{}));
  CHECK(broker.out.str().contains("audit_head were replaced together"));
  CHECK(broker.out.str().contains("kept elsewhere"));
}

TEST_CASE("brokerctl audit verify: a missing head is said and has an exit code of its own") {
  AuditBroker broker;
  broker.state.head_missing_after = 3;
  REQUIRE(broker.run_verb(VerifyAudit{}));
  CHECK(broker.out.str().contains("records after 3 may have been cut off"));
  CHECK(broker.exit_code == 4);

  broker.out.str("");
  REQUIRE(broker.run_verb(VerifyAudit{}, Output::Json));
  CHECK(wire::Json::parse(broker.out.str()).at("head_missing_after") == 3);
}

TEST_CASE("brokerctl audit: a clock that jumped is said, with the operator's word to give") {
  AuditBroker broker;
  broker.state.clock_ahead_ms = 3652LL * 86'400'000;
  const Verb verb = GENERATE(Verb(VerifyAudit{}), Verb(ListAudit{.limit = 100}));
  REQUIRE(broker.run_verb(verb));
  CHECK(broker.out.str().contains("jumped 3652 days ahead"));
  CHECK(broker.out.str().contains("--audit-trust-clock"));
}

TEST_CASE("brokerctl audit export: JSON lines that can be checked again, by tenant and time") {
  AuditBroker broker;
  REQUIRE(broker.run_verb(ExportAudit{}));
  std::istringstream lines(broker.out.str());
  std::size_t n = 0;
  for (std::string line; std::getline(lines, line); ++n) {
    wire::Json object = wire::Json::parse(line);
    const auto hash = object.at("hash").get<std::string>();
    object.erase("hash");
    CHECK(audit::hash_of(object.dump()) == hash);
  }
  CHECK(n == 5);

  broker.out.str("");
  REQUIRE(broker.run_verb(ExportAudit{.since_unix_ms = 2'000'000, .tenant = TenantId{"alice"}}));
  CHECK(wire::Json::parse(broker.out.str()).at("sequence") == 3);
}

TEST_CASE("brokerctl audit: the newest records are a table") {
  AuditBroker broker;
  REQUIRE(broker.run_verb(ListAudit{.limit = 100}));
  CHECK(broker.out.str().contains("revocation"));
  CHECK(broker.out.str().contains("1970-01-01T00:16:40Z"));
  CHECK(broker.out.str().contains("GENERATED"));
}

TEST_CASE("brokerctl audit: records appended during the read are the newest") {
  AuditBroker broker;
  wire::AuditPage start = broker.page(0, 0);
  start.head_sequence = 3;
  broker.replies["audit.list"] = {start.to_json(), broker.page(1, 5).to_json(),
                                  broker.page(0, 0).to_json()};

  const auto newest = newest_audit_records(2, broker.dependencies());

  REQUIRE(newest);
  REQUIRE(newest->size() == 2);
  CHECK(newest->at(0).at("sequence") == 4);
  CHECK(newest->at(1).at("sequence") == 5);
}

TEST_CASE(
    "brokerctl audit: pages that do not advance, and a broker without a journal, are errors") {
  AuditBroker broker;
  std::swap(broker.records[0], broker.records[1]);
  CHECK(broker.run_verb(VerifyAudit{}).error().code == Errc::MalformedMessage);
  broker.replies["audit.list"] = {fail(Errc::BadRequest, "start it with --state-dir")};
  CHECK(run({.verb = VerifyAudit{}}, broker.dependencies()).error().code == Errc::BadRequest);
}

TEST_CASE("brokerctl audit: --since takes a day or a time in UTC, and nothing else") {
  CHECK(parse_utc_ms("1970-01-02").value() == 86'400'000);
  CHECK(parse_utc_ms("2026-11-24T18:30:00Z").value() == 1'795'545'000'000);
  for (const char* wrong : {"", "yesterday", "2026-02-31", "2026-11-24T18:30:00", "2026-11-24 "})
    CHECK(parse_utc_ms(wrong).error().code == Errc::BadRequest);
}
