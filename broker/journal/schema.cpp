#include "broker/journal/schema.hpp"

#include <fmt/format.h>

#include <array>

namespace leasehold::journal {
namespace {

constexpr std::int64_t kApplicationId = 0x4c53'484a;  // "LSHJ"

/// Step n migrates a file of version n to version n + 1. Never edit a step: files of every version
/// exist.
constexpr std::array<const char*, kSchemaVersion> kSteps{
    R"sql(
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE tenant (tenant TEXT PRIMARY KEY, policy TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE worker (
  attachment INTEGER PRIMARY KEY, counter INTEGER NOT NULL, name TEXT NOT NULL,
  pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, uid INTEGER NOT NULL,
  state INTEGER NOT NULL, model TEXT NOT NULL, address TEXT NOT NULL,
  blocks_per_extent INTEGER NOT NULL);
CREATE TABLE lease (
  slot INTEGER PRIMARY KEY, generation INTEGER NOT NULL, attachment INTEGER NOT NULL,
  scope INTEGER NOT NULL, state INTEGER NOT NULL, reason INTEGER NOT NULL,
  revoked_ns INTEGER NOT NULL, fenced_ns INTEGER NOT NULL, proof TEXT NOT NULL,
  tenant TEXT NOT NULL, holder_pid INTEGER NOT NULL, holder_start_ticks INTEGER NOT NULL,
  request_uid INTEGER NOT NULL, request_id TEXT NOT NULL, request_digest INTEGER NOT NULL,
  ttl_ns INTEGER NOT NULL, deadline_ns INTEGER NOT NULL, drain_deadline_ns INTEGER NOT NULL,
  charged_blocks INTEGER NOT NULL, region INTEGER NOT NULL);
CREATE TABLE extent (
  extent INTEGER PRIMARY KEY, slot INTEGER NOT NULL, generation INTEGER NOT NULL,
  state INTEGER NOT NULL, size_bytes INTEGER NOT NULL, device INTEGER NOT NULL,
  inode INTEGER NOT NULL);
CREATE TABLE region (
  region INTEGER PRIMARY KEY, state INTEGER NOT NULL, size_bytes INTEGER NOT NULL,
  loader INTEGER NOT NULL, file_device INTEGER NOT NULL, file_inode INTEGER NOT NULL,
  file_size_bytes INTEGER NOT NULL, file_mtime_ns INTEGER NOT NULL,
  layout_digest TEXT NOT NULL, layout_version INTEGER NOT NULL);
)sql",
    // Which lease replaces which: blocks of a replaced lease are charged once.
    R"sql(
ALTER TABLE lease ADD COLUMN replaces_slot INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN replaces_generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN replaced_by_slot INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN replaced_by_generation INTEGER NOT NULL DEFAULT 0;
)sql",
    // Renewals end here; 0: no limit.
    "ALTER TABLE lease ADD COLUMN last_deadline_ns INTEGER NOT NULL DEFAULT 0;",
    // The model and the part of the weights that an engine lease covers.
    R"sql(
ALTER TABLE lease ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE lease ADD COLUMN part TEXT NOT NULL DEFAULT '';
)sql",
    // Operator actions; the time of a grant; details of quarantined memory.
    R"sql(
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
)sql",
    // True if the worker wrote to memory after its fence.
    "ALTER TABLE worker ADD COLUMN untrusted INTEGER NOT NULL DEFAULT 0;",
    // Why an extent is quarantined. Held extents have their worker in touched_by.
    "ALTER TABLE extent ADD COLUMN quarantine_why INTEGER NOT NULL DEFAULT 0;",
    // Rename tables and columns to the names in the code.
    R"sql(
ALTER TABLE audit RENAME TO operator_action;
ALTER TABLE operator_action RENAME COLUMN audit TO operator_action;
ALTER TABLE operator_action RENAME COLUMN deed TO action;
UPDATE operator_action SET action = 'quarantine_release' WHERE action = 'unfence';
ALTER TABLE extent RENAME COLUMN touched_by TO last_worker;
ALTER TABLE extent RENAME COLUMN touched_by_name TO last_worker_name;
ALTER TABLE extent RENAME COLUMN quarantine_why TO quarantine_reason;
ALTER TABLE region RENAME COLUMN touched_by TO last_worker;
ALTER TABLE region RENAME COLUMN touched_by_name TO last_worker_name;
)sql",
    // Drained tenants and workers.
    R"sql(
ALTER TABLE tenant ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;
)sql",
    // The limit on rebinds.
    R"sql(
UPDATE tenant
  SET policy = json_set(policy, '$.rebinds_per_minute', 600, '$.rebind_burst', 256)
  WHERE json_valid(policy);
)sql",
    // The user whose workers share a region; 2^32 - 1 (no user) for regions from before this
    // version.
    "ALTER TABLE region ADD COLUMN worker_uid INTEGER NOT NULL DEFAULT 4294967295;",
    // Reserves of guaranteed tenants; the reason (drain_deadline) of a revocation at the deadline.
    R"sql(
UPDATE tenant SET policy = json_set(policy, '$.reserved_blocks', 0) WHERE json_valid(policy);
ALTER TABLE lease ADD COLUMN drain_reason INTEGER NOT NULL DEFAULT 8;
)sql",
    // Policies may have tokens_per_minute, which an older broker would drop. Without it: no limit.
    "UPDATE tenant SET policy = json_remove(policy, '$.tokens_per_minute') WHERE "
    "json_valid(policy);",
    // The pool of an extent; 0: KV.
    "ALTER TABLE extent ADD COLUMN pool INTEGER NOT NULL DEFAULT 0;",
    // The size of a reserve; 0: it is fixed when the next worker is ready.
    "ALTER TABLE tenant ADD COLUMN reserved_bytes INTEGER NOT NULL DEFAULT 0;",
    // Hashes of API keys, and the key that a lease was acquired with.
    R"sql(
CREATE TABLE api_key (
  api_key TEXT PRIMARY KEY, tenant TEXT NOT NULL, hash TEXT NOT NULL) WITHOUT ROWID;
ALTER TABLE lease ADD COLUMN api_key TEXT NOT NULL DEFAULT '';
)sql",
    // The audit chain, and the newest number of each worker's usage records.
    R"sql(
CREATE TABLE audit_record (
  sequence INTEGER PRIMARY KEY, at_unix_ms INTEGER NOT NULL, content TEXT NOT NULL,
  hash TEXT NOT NULL);
CREATE TABLE usage_source (attachment INTEGER PRIMARY KEY, number INTEGER NOT NULL);
)sql"};

Result<void> check_ours(Database& database, std::int64_t version) {
  const std::int64_t application = TRY(database.number("PRAGMA application_id"));
  const std::int64_t tables = TRY(database.number("SELECT count(*) FROM sqlite_schema"));
  const bool fresh = application == 0 && version == 0 && tables == 0;
  if (!fresh && application != kApplicationId) {
    return fail(Errc::FileCorrupt, "the file is not a journal; choose another --state-dir");
  }
  if (version > kSchemaVersion) {
    return fail(Errc::FileCorrupt,
                fmt::format("the journal has schema {}, this broker knows up to {}; start the "
                            "newer broker",
                            version, kSchemaVersion));
  }
  return {};
}

}  // namespace

Result<void> prepare_schema(Database& database) {
  const std::int64_t version = TRY(database.number("PRAGMA user_version"));
  TRY(check_ours(database, version));
  if (version == kSchemaVersion) return {};
  std::string sql = "BEGIN IMMEDIATE;";
  for (std::int64_t step = version; step < kSchemaVersion; ++step) {
    sql += kSteps[static_cast<std::size_t>(step)];
  }
  sql += fmt::format("PRAGMA application_id={}; PRAGMA user_version={}; COMMIT;", kApplicationId,
                     kSchemaVersion);
  return database.execute(sql);
}

}  // namespace leasehold::journal
