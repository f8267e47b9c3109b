#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/broker/journal/state_dir.hpp"

using namespace leasehold;
using namespace leasehold::journal;

namespace {

/// A journal of schema version 1.
constexpr const char* kVersionOne = R"sql(
PRAGMA application_id=1280526410; PRAGMA user_version=1;
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE tenant (tenant TEXT PRIMARY KEY, policy TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE worker (attachment INTEGER PRIMARY KEY, counter INTEGER NOT NULL, name TEXT NOT NULL,
  pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, uid INTEGER NOT NULL,
  state INTEGER NOT NULL, model TEXT NOT NULL, address TEXT NOT NULL,
  blocks_per_extent INTEGER NOT NULL);
CREATE TABLE lease (slot INTEGER PRIMARY KEY, generation INTEGER NOT NULL,
  attachment INTEGER NOT NULL, scope INTEGER NOT NULL, state INTEGER NOT NULL,
  reason INTEGER NOT NULL, revoked_ns INTEGER NOT NULL, fenced_ns INTEGER NOT NULL,
  proof TEXT NOT NULL, tenant TEXT NOT NULL, holder_pid INTEGER NOT NULL,
  holder_start_ticks INTEGER NOT NULL, request_uid INTEGER NOT NULL, request_id TEXT NOT NULL,
  request_digest INTEGER NOT NULL, ttl_ns INTEGER NOT NULL, deadline_ns INTEGER NOT NULL,
  drain_deadline_ns INTEGER NOT NULL, charged_blocks INTEGER NOT NULL, region INTEGER NOT NULL);
CREATE TABLE extent (extent INTEGER PRIMARY KEY, slot INTEGER NOT NULL,
  generation INTEGER NOT NULL, state INTEGER NOT NULL, size_bytes INTEGER NOT NULL,
  device INTEGER NOT NULL, inode INTEGER NOT NULL);
CREATE TABLE region (region INTEGER PRIMARY KEY, state INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL, loader INTEGER NOT NULL, file_device INTEGER NOT NULL,
  file_inode INTEGER NOT NULL, file_size_bytes INTEGER NOT NULL, file_mtime_ns INTEGER NOT NULL,
  layout_digest TEXT NOT NULL, layout_version INTEGER NOT NULL);
INSERT INTO worker VALUES (1, 0, 'w', 10, 20, 0, 1, '', '', 8);
INSERT INTO lease VALUES (4, 3, 1, 1, 1, 0, 0, 0, '', 'a', 1, 2, 0, 'r', 5, 6, 7, 0, 8, 0);
)sql";

/// Brings kVersionOne to schema version 7 as brokers of that version did, with rows that use the
/// columns added since.
constexpr const char* kVersionSeven = R"sql(
ALTER TABLE lease ADD COLUMN replaces_slot INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN replaces_generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN replaced_by_slot INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN replaced_by_generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN last_deadline_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE lease ADD COLUMN part TEXT NOT NULL DEFAULT '';
CREATE TABLE audit (
  audit INTEGER PRIMARY KEY,
  at_unix_s INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER)),
  at_boottime_ns INTEGER NOT NULL, uid INTEGER NOT NULL, deed TEXT NOT NULL,
  object TEXT NOT NULL, reason TEXT NOT NULL, done INTEGER NOT NULL);
ALTER TABLE lease ADD COLUMN granted_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE extent ADD COLUMN touched_by INTEGER NOT NULL DEFAULT 0;
ALTER TABLE extent ADD COLUMN touched_by_name TEXT NOT NULL DEFAULT '';
ALTER TABLE extent ADD COLUMN quarantined_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE extent ADD COLUMN allocated_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE region ADD COLUMN touched_by INTEGER NOT NULL DEFAULT 0;
ALTER TABLE region ADD COLUMN touched_by_name TEXT NOT NULL DEFAULT '';
ALTER TABLE region ADD COLUMN quarantined_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE region ADD COLUMN allocated_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN untrusted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE extent ADD COLUMN quarantine_why INTEGER NOT NULL DEFAULT 0;
PRAGMA user_version=7;
INSERT INTO meta VALUES ('boot_id', 'boot-1'), ('generations_reserved', 1024),
  ('attachments_reserved', 2048), ('extents_reserved', 65536), ('regions_reserved', 1024),
  ('extent_size_bytes', 2097152);
INSERT INTO tenant VALUES ('a', '{"max_blocks":77,"max_concurrent":2,"request_id":"journal",
  "tenant":"a","tier":"standard","ttl_ms":500,"weight":3}');
UPDATE worker SET untrusted = 1;
UPDATE lease SET model = 'm', part = 'blk.0', last_deadline_ns = 40, granted_ns = 9;
INSERT INTO extent VALUES (7, 4, 3, 5, 2097152, 8, 9, 1, 'w', 6, 8192, 1);
INSERT INTO region VALUES (2, 4, 4096, 1, 1, 2, 3, 4, 'digest', 5, 1, 'w', 5, 4096);
INSERT INTO audit (at_unix_s, at_boottime_ns, uid, deed, object, reason, done) VALUES
  (1700000001, 1, 7, 'revoke', 'lease:4.3', '', 1),
  (1700000002, 2, 8, 'unfence', 'extent:7', 'checked', 0);
)sql";

/// A state directory as the broker of schema version 7 left it.
struct VersionSeven {
  StateDir dir;
  VersionSeven() {
    run_sql(dir.file("journal.db"), kVersionOne);
    run_sql(dir.file("journal.db"), kVersionSeven);
    std::ofstream(dir.file("numbers.used")) << "4096 2048 65536 1024\n";
  }
};

}  // namespace

TEST_CASE("journal: opening a file of version 1 migrates it and keeps its rows") {
  const StateDir dir;
  run_sql(dir.file("journal.db"), kVersionOne);

  auto journal = SqliteJournal::open(dir.path()).value();

  const Image image = journal->load(kNowUnixS).value();
  CHECK(image.leases.at({4, 3}).charged_blocks == 8);
  CHECK(image.leases.at({4, 3}).replaces == LeaseId{});
  CHECK(journal->write({.rows = {lease_row(5)}}).has_value());
}

TEST_CASE("journal: opening a file of version 7 keeps tenants, leases and quarantined memory") {
  const VersionSeven old;

  const Image image = SqliteJournal::open(old.dir.path()).value()->load(kNowUnixS).value();

  CHECK(image.boot_id == "boot-1");
  CHECK(image.tenants.at({"a"}).policy.max_blocks == 77);
  CHECK_FALSE(image.tenants.at({"a"}).draining);
  CHECK(image.tenants.at({"a"}).policy.rebinds_per_minute == 600);
  CHECK(image.tenants.at({"a"}).policy.rebind_burst == 256);
  CHECK(image.tenants.at({"a"}).policy.reserved_blocks == 0);
  CHECK(image.tenants.at({"a"}).reserved_bytes == 0);
  CHECK_FALSE(image.tenants.at({"a"}).policy.tokens_per_minute);
  CHECK(image.workers.at({1}).untrusted);
  CHECK_FALSE(image.workers.at({1}).draining);
  CHECK(image.leases.at({4, 3}).part == "blk.0");
  CHECK(image.leases.at({4, 3}).granted_ns == 9);
  CHECK(image.leases.at({4, 3}).drain_reason == RevokeReason::DrainDeadline);
  CHECK(image.extents.at({7}).state == ExtentState::Quarantined);
  CHECK(image.extents.at({7}).pool == MemoryPool::Kv);
  CHECK(image.extents.at({7}).quarantine ==
        QuarantineColumns{{1}, "w", 6, 8192, QuarantineReason::NotReturned});
  CHECK(image.regions.at({2}).state == RegionState::Quarantined);
  CHECK(image.regions.at({2}).quarantine == QuarantineColumns{{1}, "w", 5, 4096});
}

TEST_CASE("journal: the audit table of version 7 becomes operator actions") {
  const VersionSeven old;
  const auto journal = SqliteJournal::open(old.dir.path()).value();
  journal->write({.rows = {OperatorActionRow{.uid = 9, .action = "drain", .object = "tenant:a"}}})
      .value();

  const auto actions = journal->newest_operator_actions(10).value();

  REQUIRE(actions.size() == 3);
  CHECK(actions[0].action == "drain");
  CHECK(actions[1].action == "quarantine_release");
  CHECK(actions[1].reason == "checked");
  CHECK(actions[1].at_unix_s == 1'700'000'002);
  CHECK_FALSE(actions[1].done);
  CHECK(actions[2].action == "revoke");
  CHECK(actions[2].uid == 7);
}

TEST_CASE("journal: the marks file of version 7 still counts, even without its journal") {
  const VersionSeven old;
  SECTION("with the journal") {}
  SECTION("without the journal") {
    std::filesystem::remove(old.dir.file("journal.db"));
  }

  const Image image = SqliteJournal::open(old.dir.path()).value()->load(kNowUnixS).value();

  CHECK(image.reserved.generations > 4096);
  CHECK(image.reserved.attachments > 2048);
  CHECK(image.reserved.extents > 65'536);
  CHECK(image.reserved.regions > 1024);
  CHECK_FALSE(std::filesystem::exists(old.dir.file("numbers.used")));
}
