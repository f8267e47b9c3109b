#include "broker/journal/sqlite_journal.hpp"

#include <algorithm>

#include "broker/journal/schema.hpp"

namespace leasehold::journal {
namespace {

/// Pages of the log after which it is moved into the database, to be used from its start again.
constexpr std::uint64_t kCheckpointPages = 1000;
/// So long a log has outrun the checkpointer, who never makes a writer wait; now one waits.
constexpr std::uint64_t kLongestLogPages = 16 * kCheckpointPages;
constexpr std::uint64_t kPageBytes = 4096;
/// A fence alone rewrites a page of leases, and its log entry is no longer than two of them.
constexpr std::uint64_t kBytesPerFence = 2 * kPageBytes;

constexpr const char* kPragmas =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY;";

Result<void> check_integrity(Database& database) {
  Statement check = TRY(database.prepare("PRAGMA quick_check(1)"));
  std::string verdict;
  if (TRY(check.next())) check.read(verdict);
  if (verdict == "ok") return {};
  return fail(Errc::FileCorrupt,
              "the journal is damaged (" + verdict + "); move it away to start without it");
}

}  // namespace

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::open(const std::string& state_dir) {
  const std::string path = state_dir + "/journal.db";
  Database database = TRY(Database::open(path));
  TRY(database.execute(kPragmas));
  TRY(check_integrity(database));
  TRY(prepare_schema(database));
  Statement begin = TRY(database.prepare("BEGIN IMMEDIATE"));
  Statement commit = TRY(database.prepare("COMMIT"));
  Statement rollback = TRY(database.prepare("ROLLBACK"));
  Statement sync_full = TRY(database.prepare("PRAGMA synchronous=FULL"));
  Statement sync_normal = TRY(database.prepare("PRAGMA synchronous=NORMAL"));
  RowWriter writer = TRY(RowWriter::create(database));
  ReserveFile reserve = TRY(ReserveFile::open(state_dir + "/journal.reserve"));
  auto checkpointer = TRY(Checkpointer::start(path));
  return std::unique_ptr<SqliteJournal>(
      new SqliteJournal({.database = std::move(database),
                         .writer = std::move(writer),
                         .statements = {.begin = std::move(begin),
                                        .commit = std::move(commit),
                                        .rollback = std::move(rollback),
                                        .sync_full = std::move(sync_full),
                                        .sync_normal = std::move(sync_normal)},
                         .reserve = std::move(reserve),
                         .checkpointer = std::move(checkpointer)}));
}

Result<void> SqliteJournal::adopt(const std::string& boot_id) {
  TRY(parts_.statements.sync_full.run());
  Statement put =
      TRY(parts_.database.prepare("REPLACE INTO meta (name, value) VALUES ('boot_id', ?)"));
  auto written = put.run(boot_id);
  TRY(parts_.statements.sync_normal.run());
  return written;
}

Result<void> SqliteJournal::write(const Batch& batch) {
  count_leases(batch);
  Result<void> written;
  if (batch.grants) written = parts_.reserve.hold(reserve_wanted());
  if (written) written = commit(batch);
  const bool full = !written && written.error().code == Errc::DiskFull;
  if (full && !batch.grants && parts_.reserve.size_bytes() != 0) {
    parts_.reserve.give_up();
    written = commit(batch);
  }
  if (!written) keep_waiting(batch);
  return written;
}

Result<void> SqliteJournal::commit(const Batch& batch) {
  const bool durable = batch.durable || waiting_is_durable_;
  if (durable) TRY(parts_.statements.sync_full.run());
  Result<void> written = parts_.statements.begin.run();
  if (written) written = write_rows(batch);
  if (written) written = parts_.statements.commit.run();
  // SQLite has rolled back by itself after some errors, and then refuses this.
  if (!written) (void)parts_.statements.rollback.run();
  if (durable) TRY(parts_.statements.sync_normal.run());
  if (!written) return written;
  waiting_.clear();
  waiting_is_durable_ = false;
  shorten_log();
  return {};
}

void SqliteJournal::shorten_log() {
  const std::uint64_t pages = parts_.database.log_pages();
  if (pages >= kLongestLogPages) return parts_.database.checkpoint(true);
  // Under load the log is never moved wholly, and so goes on where it is: asked for at each commit,
  // the checkpointer would be woken for a page.
  checkpointed_pages_ = std::min(checkpointed_pages_, pages);  // it began anew
  if (pages < checkpointed_pages_ + kCheckpointPages) return;
  checkpointed_pages_ = pages;
  parts_.checkpointer->wake();
}

Result<void> SqliteJournal::write_rows(const Batch& batch) {
  for (const auto& [key, row] : waiting_) TRY(parts_.writer.write(row));
  for (const Row& row : batch.rows) TRY(parts_.writer.write(row));
  return {};
}

struct SqliteJournal::KeyOf {
  RowKey operator()(const TenantRow& row) const { return {0, row.policy.tenant.value, 0, 0}; }
  RowKey operator()(const WorkerRow& row) const { return {1, "", row.id.value, 0}; }
  RowKey operator()(const WorkerGone& row) const { return {1, "", row.id.value, 0}; }
  RowKey operator()(const LeaseRow& row) const { return {2, "", row.id.slot, row.id.generation}; }
  RowKey operator()(const LeaseGone& row) const { return {2, "", row.id.slot, row.id.generation}; }
  RowKey operator()(const ExtentRow& row) const { return {3, "", row.id.value, 0}; }
  RowKey operator()(const ExtentGone& row) const { return {3, "", row.id.value, 0}; }
  RowKey operator()(const RegionRow& row) const { return {4, "", row.id.value, 0}; }
  RowKey operator()(const RegionGone& row) const { return {4, "", row.id.value, 0}; }
  RowKey operator()(const Reserved&) const { return {5, "", 0, 0}; }
  RowKey operator()(const ShapeRow&) const { return {6, "", 0, 0}; }
  RowKey operator()(const AuditRow& row) const {  // replaces none
    return {7, row.deed + ' ' + row.object, static_cast<std::uint64_t>(row.at_boottime_ns), 0};
  }
};

void SqliteJournal::keep_waiting(const Batch& batch) {
  waiting_is_durable_ = waiting_is_durable_ || batch.durable;
  for (const Row& row : batch.rows) waiting_.insert_or_assign(std::visit(KeyOf{}, row), row);
}

void SqliteJournal::count_leases(const Batch& batch) {
  for (const Row& row : batch.rows) {
    if (const auto* gone = std::get_if<LeaseGone>(&row)) not_fenced_.erase(gone->id);
    const auto* lease = std::get_if<LeaseRow>(&row);
    if (lease == nullptr) continue;
    if (lease->state == LeaseState::Fenced) {
      not_fenced_.erase(lease->id);
    } else {
      not_fenced_.insert(lease->id);
    }
  }
}

std::uint64_t SqliteJournal::reserve_wanted() const {
  constexpr std::uint64_t kLogBytes = 2 * kCheckpointPages * kPageBytes;
  return std::min(not_fenced_.size() * kBytesPerFence, kLogBytes) + kPageBytes * 16;
}

}  // namespace leasehold::journal
