#include "broker/journal/sqlite_journal.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "broker/journal/damage.hpp"
#include "common/unix_time.hpp"

namespace leasehold::journal {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
/// Pages by which the log grows before a checkpoint is due: 2 MiB.
constexpr std::uint64_t kCheckpointPages = 512;
/// At this length writes wait for the checkpointer: without a pause between transactions it never
/// moves the whole log, which would then grow until the disk is full.
constexpr std::uint64_t kLongLogPages = 3 * kCheckpointPages;
constexpr auto kMoveTimeout = std::chrono::milliseconds(100);
/// If the log is shorter, moving it does not free enough space on a full disk.
constexpr std::uint64_t kLeastMovedPages = kCheckpointPages / 4;
/// A revocation or a fence rewrites one page of leases, and a revocation also the last page of the
/// audit chain. With headers and a split page this adds at most three pages to the log.
constexpr std::uint64_t kBytesPerFence = 3 * kPageBytes;
/// Additional space for inner pages, and for rows of workers and extents.
constexpr std::uint64_t kSpareBytes = 16 * kPageBytes;

constexpr const char* kPragmas =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY;";

Result<Database> open_checked(const std::string& path) {
  Database database = TRY(Database::open(path));
  TRY(database.execute(kPragmas));
  TRY(database.execute(
      fmt::format("PRAGMA journal_size_limit={};", 2 * kCheckpointPages * kPageBytes)));
  TRY(check_integrity(database));
  return database;
}

template <class T>
bool is_disk_full(const Result<T>& result) {
  return !result && result.error().code == Errc::DiskFull;
}

/// Opens the database and moves the whole log of an earlier broker into it, so that a long log does
/// not delay writes. On a full disk the space for this comes from the reserve, which `load` fills
/// again. If the log cannot be moved, it stays, and grants are refused.
Result<Database> open_database(const std::string& path, ReserveFile& reserve) {
  Result<Database> opened = open_checked(path);
  if (is_disk_full(opened)) {
    reserve.give_up(reserve.size_bytes());
    opened = open_checked(path);
  }
  Database database = TRY(std::move(opened));
  if (is_disk_full(database.checkpoint(CheckpointMode::Truncate))) {
    reserve.give_up(reserve.size_bytes());
    (void)database.checkpoint(CheckpointMode::Truncate);
  }
  TRY(prepare_schema(database));
  return database;
}

}  // namespace

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::open(const std::string& state_dir,
                                                           AuditLimits limits) {
  const std::string path = state_dir + "/journal.db";
  TRY(check_log_has_database(path));
  ReserveFile reserve = TRY(ReserveFile::open(state_dir + "/journal.reserve"));
  Database database = TRY(naming_files(path, open_database(path, reserve)));
  Statement begin = TRY(database.prepare("BEGIN IMMEDIATE"));
  Statement commit = TRY(database.prepare("COMMIT"));
  Statement rollback = TRY(database.prepare("ROLLBACK"));
  Statement sync_full = TRY(database.prepare("PRAGMA synchronous=FULL"));
  Statement sync_normal = TRY(database.prepare("PRAGMA synchronous=NORMAL"));
  const std::string head_path = state_dir + "/audit_head";
  const std::optional<audit::Link> head = TRY(read_audit_head(head_path));
  auto audit =
      std::make_unique<AuditLog>(TRY(naming_files(path, AuditLog::create(database, head, limits))));
  // Write the head file before the first record, so that a missing file always means that it was
  // removed.
  if (!head) (void)write_audit_head(head_path, audit->head());
  Tables tables = TRY(Tables::open(database, *audit));
  const std::string marks_path = state_dir + "/high_water_marks";
  HighWaterMarksFile high_water_marks = TRY(HighWaterMarksFile::open(marks_path));
  auto checkpointer = TRY(Checkpointer::start(path, head_path));
  AuditSigner signer = TRY(AuditSigner::open(state_dir, audit->key_links()));
  std::unique_ptr<SqliteJournal> journal(
      new SqliteJournal({.database = std::move(database),
                         .audit = std::move(audit),
                         .signer = std::move(signer),
                         .tables = std::move(tables),
                         .statements = {.begin = std::move(begin),
                                        .commit = std::move(commit),
                                        .rollback = std::move(rollback),
                                        .sync_full = std::move(sync_full),
                                        .sync_normal = std::move(sync_normal)},
                         .reserve = std::move(reserve),
                         .high_water_marks = std::move(high_water_marks),
                         .checkpointer = std::move(checkpointer)}));
  // On a full disk the broker starts without a key, and creates it when one is needed.
  if (const auto prepared = journal->prepare_key(); !prepared && !is_disk_full(prepared))
    return std::unexpected(prepared.error());
  return journal;
}

Result<void> SqliteJournal::prepare_key() {
  TRY(components_.signer.create_if_missing());
  const auto& known = components_.audit->key_links();
  return known.size() < components_.signer.links().size() ? write_key() : Result<void>{};
}

/// The first key needs no record, because the heads name it as the chain's id.
Result<void> SqliteJournal::write_key() {
  const AuditSigner& signer = components_.signer;
  AuditKeyRow row{.links = signer.links()};
  if (row.links.size() > 1) row.record = signer.newest();
  return commit({.rows = {std::move(row)}, .durable = true});
}

Result<Image> SqliteJournal::load(std::int64_t now_unix_s) {
  Database& database = components_.database;
  Image image = TRY(naming_files(database.path(), load_image(database)));
  const HighWaterMarksFile& file = components_.high_water_marks;
  marks_ = higher(image.reserved, file.marks());
  was_restored_ = !file.is_original() && marks_ != HighWaterMarks{};
  if (was_restored_) marks_ = higher(marks_, ids_issued_before(now_unix_s));
  image.reserved = marks_;
  for (const auto& [id, row] : image.leases) {
    waiting_.note_recorded(row);
    if (row.state != LeaseState::Fenced) not_fenced_.insert(id);
  }
  for (const auto& [id, row] : image.extents) waiting_.note_recorded(row);
  for (const auto& [id, row] : image.regions) waiting_.note_recorded(row);
  (void)components_.reserve.grow_to(reserve_wanted());  // on failure the old reserve remains
  return image;
}

Result<void> SqliteJournal::write(const Batch& batch) {
  count_leases(batch);
  Result<void> written = try_write(batch);
  if (is_disk_full(written) && may_use_reserve(batch)) written = commit_on_reserve(batch);
  if (!written) waiting_.add(batch, unix_time_ms());
  return written;
}

/// Refuses while the log is long, because then decisions that revoke nothing must wait for the
/// checkpointer, and the others must not.
bool SqliteJournal::write_together(const Batch& batch) {
  if (components_.database.log_pages() >= kLongLogPages) return false;
  count_leases(batch);
  return try_write(batch).has_value();
}

Result<void> SqliteJournal::try_write(const Batch& batch) {
  SpaceShortage& shortage = batch.has_grants ? no_space_for_grants_ : no_space_;
  const std::uint64_t held_bytes =
      batch.has_grants ? components_.reserve.missing_bytes(reserve_wanted()) : 0;
  const std::uint64_t log_moves = components_.checkpointer->complete_moves();
  TRY(shortage.check(components_.reserve, log_bytes(batch) + held_bytes, log_moves));
  Result<void> written = write_new(batch);
  if (written) {
    shortage.end();
  } else if (is_disk_full(written)) {
    const bool is_new = !shortage.has_begun();
    shortage.begin(written.error(), log_moves);
    if (is_new && components_.database.log_pages() >= kLeastMovedPages)
      components_.checkpointer->wake();
  }
  return written;
}

void SqliteJournal::wait_for_short_log(const Batch& batch) {
  const std::uint64_t pages = components_.database.log_pages();
  awaited_pages_ = std::min(awaited_pages_, pages);  // the log restarted
  if (pages < std::max(kLongLogPages, awaited_pages_ + kCheckpointPages)) return;
  if (waiting_.has_revocations(batch)) return;
  awaited_pages_ = pages;
  components_.checkpointer->wait_for_move(kMoveTimeout);
}

Result<void> SqliteJournal::write_new(const Batch& batch) {
  wait_for_short_log(batch);
  if (batch.has_grants) TRY(components_.reserve.grow_to(reserve_wanted()));
  TRY(raise_marks(batch));
  return commit(batch);
}

Result<std::vector<wire::OperatorActionView>> SqliteJournal::newest_operator_actions(
    std::size_t at_most) {
  Statement rows = TRY(components_.database.prepare(
      fmt::format("SELECT at_unix_s, uid, action, object, reason, done FROM operator_action"
                  " ORDER BY operator_action DESC LIMIT {}",
                  at_most)));
  std::vector<wire::OperatorActionView> actions;
  while (TRY(rows.next())) {
    wire::OperatorActionView& action = actions.emplace_back();
    rows.read(action.at_unix_s, action.uid, action.action, action.object, action.reason,
              action.done);
  }
  return actions;
}

Result<wire::AuditPage> SqliteJournal::audit_page(const wire::AuditList& request) {
  return components_.audit->page(request);
}

std::optional<wire::LeaseCounts> SqliteJournal::lease_counts(const TenantId& tenant) const {
  const wire::TenantHead* head = components_.audit->tenants().find(tenant.value);
  return head == nullptr ? std::nullopt : std::optional(head->leases);
}

std::optional<wire::AuditState> SqliteJournal::audit_state() const {
  const AuditLog& audit = *components_.audit;
  return wire::AuditState{.leases = audit.tenants().all_leases(),
                          .gaps = audit.gaps(),
                          .waiting = waiting_.lease_records(),
                          .key_is_unlinked = components_.signer.is_replacement()};
}

Result<wire::DsseEnvelope> SqliteJournal::signed_head(const wire::AuditHeadQuery& query) {
  TRY(components_.signer.create_if_missing());
  wire::AuditHead head = TRY(components_.audit->signed_part(query.tenant));
  head.waiting = waiting_.lease_records();
  return components_.signer.sign(std::move(head));
}

/// A power cut must not take records that a kept head counts: that would look like forgery.
void SqliteJournal::audit_head(const wire::AuditHeadQuery& query, OnSignedHead on_signed) {
  auto head = signed_head(query);
  if (!head) return on_signed(std::move(head));
  components_.checkpointer->sync_log([head = std::move(head), on_signed = std::move(on_signed)](
                                         const Result<void>& synced) mutable {
    on_signed(synced ? std::move(head) : std::unexpected(synced.error()));
  });
}

Result<wire::AuditKeys> SqliteJournal::audit_keys() {
  TRY(components_.signer.create_if_missing());
  wire::AuditKeys keys;
  keys.keys = components_.signer.links();
  return keys;
}

/// If the chain's record of the new key cannot be written, the next start writes it.
Result<wire::AuditKeys> SqliteJournal::rotate_audit_key(const wire::AuditKeyRotate& rotate) {
  TRY(components_.signer.create_if_missing());
  if (rotate.key == components_.signer.key_id()) {
    TRY(components_.signer.rotate());
    (void)write_key();
  }
  return audit_keys();
}

/// A failure refuses only grants: without a grant no token is signed, and a fence must not be
/// delayed.
Result<void> SqliteJournal::raise_marks(const Batch& batch) {
  for (const Row& row : batch.rows) {
    if (const auto* reserved = std::get_if<HighWaterMarks>(&row)) marks_ = *reserved;
  }
  if (marks_ == components_.high_water_marks.marks()) return {};
  Result<void> raised = components_.high_water_marks.raise(marks_);
  return batch.has_grants ? raised : Result<void>{};
}

/// Releases the space that these rows need; if that is not enough, the whole reserve.
Result<void> SqliteJournal::commit_on_reserve(const Batch& batch) {
  components_.reserve.give_up(log_bytes(batch));
  Result<void> written = commit(batch);
  if (!is_disk_full(written)) return written;
  components_.reserve.give_up(components_.reserve.size_bytes());
  return commit(batch);
}

/// Upper bound on the growth of the log for the waiting rows and this batch.
std::uint64_t SqliteJournal::log_bytes(const Batch& batch) const {
  return (waiting_.size() + batch.rows.size()) * kBytesPerFence + kSpareBytes;
}

/// Only revocations and fences may use the reserve. The end of a lease that is not on disk, because
/// its grant was refused, does not count.
bool SqliteJournal::may_use_reserve(const Batch& batch) const {
  return !batch.has_grants && components_.reserve.size_bytes() != 0 &&
         waiting_.has_revocations(batch);
}

Result<void> SqliteJournal::commit(const Batch& batch) {
  const bool durable = batch.durable || waiting_.is_durable();
  if (durable) TRY(components_.statements.sync_full.run());
  Result<void> written = components_.statements.begin.run();
  if (written) written = write_rows(batch);
  if (written) written = components_.audit->finish();
  if (written) written = components_.statements.commit.run();
  // This fails after errors for which SQLite has already rolled back.
  if (!written) (void)components_.statements.rollback.run();
  // If this fails, the connection stays at FULL, which is safe but slower. The result of the
  // transaction counts in any case.
  if (durable) (void)components_.statements.sync_normal.run();
  if (!written) {
    components_.audit->rolled_back();
    return keeps_damaged(written.error()) ? commit(batch) : written;
  }
  publish_audit_head();
  waiting_.written(batch);
  if (batch.synced_later) components_.checkpointer->sync_log();
  checkpoint_if_due();
  return {};
}

/// Decisions must not depend on old audit records that are damaged.
bool SqliteJournal::keeps_damaged(const Error& why) {
  if (why.code != Errc::FileCorrupt || !components_.audit->stop_removing()) return false;
  spdlog::error("the journal is damaged and keeps all audit records until a restart detail=\"{}\"",
                why.detail);
  return true;
}

/// The record may not be synced yet; the checkpointer syncs the log before it writes the head file.
void SqliteJournal::publish_audit_head() {
  const std::uint64_t before = components_.audit->head().sequence;
  components_.audit->committed();
  const audit::Link& head = components_.audit->head();
  if (head.sequence != before) components_.checkpointer->publish_audit_head(head);
}

void SqliteJournal::checkpoint_if_due() {
  const std::uint64_t pages = components_.database.log_pages();
  // Wake the checkpointer once per kCheckpointPages, not once per commit.
  checkpointed_pages_ = std::min(checkpointed_pages_, pages);  // the log restarted
  if (pages < checkpointed_pages_ + kCheckpointPages) return;
  checkpointed_pages_ = pages;
  components_.checkpointer->wake();
}

Result<void> SqliteJournal::write_rows(const Batch& batch) {
  if (waiting_.gap()) TRY(components_.audit->append(*waiting_.gap()));
  TRY(waiting_.for_each([this](const Row& row) { return components_.tables.write(row); }));
  for (const Row& row : batch.rows) TRY(components_.tables.write(row));
  return {};
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
  return std::min(not_fenced_.size() * kBytesPerFence, kLogBytes) + kSpareBytes;
}

}  // namespace leasehold::journal
