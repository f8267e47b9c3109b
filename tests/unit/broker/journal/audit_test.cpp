// The audit chain in the journal: what is appended, kept and removed, and what tampering leaves.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "broker/journal/audit_head.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;
using namespace leasehold::journal;
using testing::FileSizeLimit;

namespace {

UsageRow usage(std::uint64_t number, std::uint64_t worker = 1) {
  return {.worker = {worker},
          .worker_name = "w" + std::to_string(worker),
          .usage = {.number = number,
                    .tenant = {"a"},
                    .request = {"r-" + std::to_string(number)},
                    .lease = {4, 3},
                    .prompt_tokens = 9,
                    .cached_tokens = 7,
                    .generated_tokens = 5,
                    .reason = "EndOfSequence",
                    .submitted_boottime_ns = 1'000'000'000,
                    .first_token_boottime_ns = 1'020'000'000,
                    .ended_boottime_ns = 1'500'000'000}};
}

RevocationRow revocation(std::uint32_t slot) {
  return {.lease = {slot, 3},
          .tenant = {"a"},
          .worker_name = "w1",
          .reason = RevokeReason::Operator,
          .at_boottime_ns = 5};
}

void write_usages(SqliteJournal& journal, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t number = first; number <= last; ++number)
    journal.write({.rows = {usage(number)}}).value();
}

/// All records, in small pages, and the findings of the check.
struct Read {
  std::vector<wire::Json> contents;
  std::vector<audit::Finding> findings;
  wire::AuditPage last_page;
};
Read read(Journal& journal) {
  Read all;
  std::uint64_t after = 0;
  const auto start = journal.audit_page({.after = 0, .limit = 0}).value();
  audit::ChainCheck check({start.removed_sequence, start.removed_hash},
                          {start.head_sequence, start.head_hash});
  while (true) {
    all.last_page = journal.audit_page({.after = after, .limit = 7}).value();
    if (all.last_page.records.empty()) break;
    for (const wire::AuditRecordView& each : all.last_page.records) {
      check.add({each.sequence, each.content, each.hash});
      all.contents.push_back(wire::Json::parse(each.content, nullptr, false));
      after = each.sequence;
    }
  }
  check.finish();
  all.findings = check.findings();
  return all;
}

/// The findings after this SQL was run on the closed journal of ten usage records.
std::vector<audit::Finding> findings_after(const char* sql) {
  const StateDir dir;
  write_usages(*opened(dir), 1, 10);
  run_sql(dir.file("journal.db"), sql);
  const auto journal = opened(dir);
  const auto found = read(*journal).findings;
  // Records that follow hide nothing.
  write_usages(*journal, 11, 12);
  CHECK(read(*journal).findings.size() == found.size());
  return found;
}

}  // namespace

TEST_CASE("audit log: usage and revocations form one chain over restarts") {
  const StateDir dir;
  opened(dir)->write({.rows = {usage(1), revocation(4)}}).value();
  const auto journal = opened(dir);
  UsageRow with_key = usage(2);
  with_key.api_key = {"0011223344556677"};
  journal->write({.rows = {with_key}}).value();

  const Read all = read(*journal);

  CHECK(all.findings.empty());
  REQUIRE(all.contents.size() == 3);
  const wire::Json& used = all.contents[0];
  CHECK(used["record"] == "usage_record");
  CHECK(used["sequence"] == 1);
  CHECK(used["tenant"] == "a");
  CHECK(used["request"] == "r-1");
  CHECK(used["lease"] == "4.3");
  CHECK(used["lease_known"] == true);
  CHECK(used["worker"] == "w1");
  CHECK(used["prompt_tokens"] == 9);
  CHECK(used["cached_tokens"] == 7);
  CHECK(used["generated_tokens"] == 5);
  CHECK(used["reason"] == "EndOfSequence");
  CHECK(used["duration_ms"] == 500);
  CHECK(used["first_token_ms"] == 20);
  CHECK(used["at_unix_ms"] > 1'700'000'000'000);
  CHECK(all.contents[1]["record"] == "revocation");
  CHECK(all.contents[1]["reason"] == "operator");
  CHECK(all.contents[1]["scope"] == "tenant");
  CHECK(all.contents[2]["request"] == "r-2");
  CHECK_FALSE(used.contains("key"));
  CHECK(all.contents[2]["key"] == "0011223344556677");
  CHECK(NullJournal().audit_page({}).error().detail.contains("--state-dir"));
}

TEST_CASE("audit log: a record that is reported again is not doubled, also after a restart") {
  const StateDir dir;
  {
    const auto journal = opened(dir);
    journal->write({.rows = {worker_row(1), worker_row(2), usage(1), usage(2)}}).value();
    journal->write({.rows = {usage(1), usage(2), usage(3)}}).value();
    journal->write({.rows = {usage(1, 2)}}).value();
    CHECK(read(*journal).contents.size() == 4);
  }
  const auto journal = opened(dir);
  journal->write({.rows = {usage(3), usage(4)}}).value();
  CHECK(read(*journal).contents.size() == 5);
  journal->write({.rows = {WorkerGone{{1}}}}).value();
  journal->write({.rows = {usage(1)}}).value();  // attachments are never used again
  CHECK(read(*journal).contents.size() == 6);
  CHECK(read(*journal).findings.empty());
}

TEST_CASE("audit log: a full disk loses no record that is reported again, and no revocation") {
  const StateDir dir;
  const auto journal = opened(dir);
  journal->write({.rows = {worker_row(1), lease_row(4), usage(1)}}).value();
  {
    const FileSizeLimit limit(std::filesystem::file_size(dir.file("journal.db-wal")));
    CHECK(journal->write({.rows = {usage(2)}}).error().code == Errc::DiskFull);
    CHECK(journal->write({.rows = {usage(2), usage(3)}}).error().code == Errc::DiskFull);
    CHECK_FALSE(journal->write({.rows = {lease_row(4, LeaseState::Revoked), revocation(4)}}));
    CHECK(journal->waiting() == 2);  // usage records wait at their worker
    CHECK(read(*journal).contents.size() == 1);
  }
  journal->write({.rows = {usage(2), usage(3)}}).value();

  const Read all = read(*journal);

  CHECK(all.findings.empty());
  REQUIRE(all.contents.size() == 4);
  CHECK(all.contents[1]["record"] == "revocation");
  CHECK(all.contents[3]["request"] == "r-3");
}

TEST_CASE("audit log: the oldest records are removed by number, and the rest verifies") {
  const StateDir dir;
  {
    const auto journal = opened(dir, {.records = 20});
    write_usages(*journal, 1, 100);
    const Read all = read(*journal);
    CHECK(all.findings.empty());
    CHECK(all.contents.size() == 20);
    CHECK(all.contents.front()["sequence"] == 81);
    CHECK(all.last_page.removed_sequence == 80);
  }
  const auto journal = opened(dir, {.records = 5});  // a lowered limit
  write_usages(*journal, 101, 101);
  CHECK(read(*journal).contents.size() == 5);
  CHECK(read(*journal).findings.empty());
}

TEST_CASE("audit log: records are removed by age once newer ones come") {
  const StateDir dir;
  write_usages(*opened(dir), 1, 10);
  run_sql(dir.file("journal.db"),
          "UPDATE audit_record SET at_unix_ms = at_unix_ms - 3*86400000 WHERE sequence <= 6");
  const auto journal = opened(dir, {.days = 2});
  write_usages(*journal, 11, 11);
  const Read all = read(*journal);
  CHECK(all.findings.empty());
  CHECK(all.contents.size() == 5);
  CHECK(all.last_page.removed_sequence == 6);
}

TEST_CASE("audit log: a clock that jumps ahead removes nothing, in that run and after it") {
  const StateDir dir;
  write_usages(*opened(dir), 1, 10);
  // As if the records were written ten years ago: the clock of this start is ten years ahead.
  run_sql(dir.file("journal.db"),
          "UPDATE audit_record SET at_unix_ms = at_unix_ms - 3650*86400000");
  {
    const auto journal = opened(dir, {.days = 30});
    CHECK(journal->audit().clock_ahead_ms() > 3640LL * 86'400'000);
    write_usages(*journal, 11, 13);
    CHECK(read(*journal).contents.size() == 13);
    CHECK(read(*journal).last_page.clock_ahead_ms > 0);
  }
  {
    const auto journal = opened(dir, {.days = 30});  // the newest records have the wrong time
    CHECK(journal->audit().clock_ahead_ms() > 0);
    write_usages(*journal, 14, 15);
    CHECK(read(*journal).contents.size() == 15);
  }
  const auto journal = opened(dir, {.days = 30, .trust_clock = true});
  CHECK(journal->audit().clock_ahead_ms() == 0);
  write_usages(*journal, 16, 16);
  CHECK(read(*journal).contents.size() == 6);
  CHECK(read(*journal).findings.empty());
}

TEST_CASE("trusted time: it follows the clock, the time since boot bounds how far") {
  constexpr std::int64_t kDay_ms = 86'400'000;
  using std::chrono::days;
  const TimePoint boot{};
  TrustedTime time(100 * kDay_ms, days(7));
  time.look(107 * kDay_ms, boot);  // a stop of a week
  CHECK(time.unix_ms() == 107 * kDay_ms);
  time.look(137 * kDay_ms, boot + days(30));  // an idle month
  CHECK(time.unix_ms() == 137 * kDay_ms);
  time.look(3137 * kDay_ms, boot + days(31));  // a jump
  CHECK(time.unix_ms() == 138 * kDay_ms);
  CHECK(time.ahead_ms() == 2999 * kDay_ms);
  time.look(140 * kDay_ms, boot + days(33));  // the clock was set right
  CHECK(time.unix_ms() == 140 * kDay_ms);
  CHECK(time.ahead_ms() == 0);
  time.look(0, boot + days(33));  // a clock that lost its time
  CHECK(time.unix_ms() == 140 * kDay_ms);
  CHECK(time.ahead_ms() < 0);
}

TEST_CASE("audit log: a head file that was removed is remembered, and a new chain needs none") {
  const StateDir dir;
  CHECK(read(*opened(dir)).last_page.head_missing_after == 0);
  write_usages(*opened(dir), 1, 10);
  CHECK(read(*opened(dir)).last_page.head_missing_after == 0);
  run_sql(dir.file("journal.db"), "DELETE FROM audit_record WHERE sequence > 7");
  std::filesystem::remove(dir.file("audit_head"));

  write_usages(*opened(dir), 11, 12);

  const Read all = read(*opened(dir));
  CHECK(all.findings.empty());
  CHECK(all.last_page.head_missing_after == 7);
  write_usages(*opened(dir, {.records = 1}), 13, 20);  // those in doubt are gone
  CHECK(read(*opened(dir)).last_page.head_missing_after == 0);
}

TEST_CASE("audit log: planted tampering is found, with the sequence number") {
  SECTION("a flipped byte") {
    const auto found = findings_after(
        "UPDATE audit_record SET content = replace(content, '\"generated_tokens\":5', "
        "'\"generated_tokens\":4') WHERE sequence = 6");
    REQUIRE(found.size() == 1);
    CHECK(found[0].sequence == 6);
  }
  SECTION("a removed row") {
    const auto found = findings_after("DELETE FROM audit_record WHERE sequence = 5");
    REQUIRE(found.size() == 1);
    CHECK(found[0].problem == "record 5 is missing");
  }
  SECTION("removed first rows") {
    const auto found = findings_after("DELETE FROM audit_record WHERE sequence <= 2");
    REQUIRE(found.size() == 1);
    CHECK(found[0].problem == "records 1 to 2 are missing");
  }
  SECTION("a cut-off tail") {
    const auto found = findings_after("DELETE FROM audit_record WHERE sequence > 7");
    REQUIRE(found.size() == 1);
    CHECK(found[0].sequence == 8);
    CHECK(found[0].problem.contains("missing"));
  }
  SECTION("two rows in another order") {
    const auto found = findings_after(
        "UPDATE audit_record SET sequence = 100 WHERE sequence = 3;"
        "UPDATE audit_record SET sequence = 3 WHERE sequence = 4;"
        "UPDATE audit_record SET sequence = 4 WHERE sequence = 100");
    REQUIRE(found.size() == 2);
    CHECK(found[0].sequence == 3);
    CHECK(found[1].sequence == 4);
  }
}

TEST_CASE("audit log: a tail that is cut off while the broker runs is found too") {
  const StateDir dir;
  const auto journal = opened(dir);
  write_usages(*journal, 1, 5);
  run_sql(dir.file("journal.db"), "DELETE FROM audit_record WHERE sequence > 3");
  const auto found = read(*journal).findings;
  REQUIRE(found.size() == 1);
  CHECK(found[0].sequence == 4);
}

TEST_CASE("audit log: the head's file names the last record at the end, and is checked") {
  const StateDir dir;
  write_usages(*opened(dir), 1, 3);
  CHECK(read_audit_head(dir.file("audit_head")).value()->sequence == 3);
  CHECK(std::filesystem::exists(dir.file("audit_head")));
  const char* text = GENERATE("", "3", "3 00\n", "x\n");
  std::ofstream(dir.file("audit_head")) << text;
  const auto refused = SqliteJournal::open(dir.path());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::FileCorrupt);
  CHECK(refused.error().detail.contains("restore it from a backup"));
}

TEST_CASE("audit log: SIGKILL in the middle of writes leaves a chain that verifies") {
  const StateDir dir;
  std::uint64_t number = 0;
  for (int round = 0; round < 5; ++round) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto journal = opened(dir, {.records = 300});
      for (std::uint64_t i = number + 1; i < number + 1'000'000; ++i) {
        if (!journal->write({.rows = {usage(2 * i), usage(2 * i + 1)}})) ::_exit(1);
        if (i % 50 == 0 && ::write(ready[1], "x", 1) != 1) ::_exit(1);
      }
      ::_exit(2);
    }
    ::close(ready[1]);
    char text = 0;
    for (int i = 0; i < 4 + round; ++i) REQUIRE(::read(ready[0], &text, 1) == 1);
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    ::close(ready[0]);
    const auto journal = opened(dir, {.records = 300});
    const Read all = read(*journal);
    CHECK(all.findings.empty());
    REQUIRE_FALSE(all.contents.empty());
    CHECK(all.contents.size() % 2 == 0);  // a transaction is written as a whole
    number = all.contents.back()["number"].get<std::uint64_t>() / 2;
    CHECK(number >= 200);
  }
}
