#include "broker/journal/audit_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/clock.hpp"
#include "common/hex.hpp"
#include "common/unix_time.hpp"

namespace leasehold::journal {
namespace {

/// A transaction removes at most this many records more than twice the number that it appends, so
/// that a lowered limit is reached over time.
constexpr std::uint64_t kRemovedBeyond = 64;
constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kMsPerDay = 86'400'000;
// Names of rows in the table `meta`.
constexpr const char* kTrustedTime = "audit_trusted_unix_ms";
constexpr const char* kHeadMissing = "audit_head_missing_after";
constexpr const char* kGaps = "audit_gaps";
constexpr const char* kKeys = "audit_keys";
constexpr const char* kTree = "audit_tree";  // with its newest record's sequence in front
constexpr const char* kRemovedTree = "audit_removed_tree";
/// The tree is stored each time it has grown past a multiple of this number of leaves, so that a
/// start reads fewer records than that.
constexpr std::uint64_t kStoredLeaves = 1024;

/// How long a broker can be stopped before its operator must confirm that the clock is right: a
/// quarter of the retention time, at most a week. If the clock is wrong, the oldest records are
/// removed that much too early.
Duration longest_step(std::uint32_t days) {
  return std::min<Duration>(std::chrono::days(days) / 4, std::chrono::days(7));
}

std::int64_t ms_between(std::int64_t from_boottime_ns, std::int64_t to_boottime_ns) {
  return (to_boottime_ns - from_boottime_ns) / kNsPerMs;
}

/// Converts a time since boot, which would mean nothing after the next boot.
std::int64_t unix_ms_of(std::int64_t boottime_ns) {
  return unix_time_ms() - ms_between(boottime_ns, SystemClock().now().boottime_ns);
}

/// As unix_ms_of; 0 stays 0.
std::int64_t unix_ms_if_known(std::int64_t boottime_ns) {
  return boottime_ns == 0 ? 0 : unix_ms_of(boottime_ns);
}

audit::Hash leaf_of(const std::string& record_hash) {
  return audit::leaf_of(audit::hash_from_hex(record_hash).value_or(audit::Hash{}));
}

Result<audit::MerkleFrontier> parse_tree(const std::string& text) {
  if (const auto tree = audit::MerkleFrontier::from_text(text)) return *tree;
  return fail(Errc::FileCorrupt, "the journal's table meta holds no tree of audit records");
}

Result<std::vector<wire::DsseEnvelope>> parse_links(const std::string& text) {
  auto keys = wire::AuditKeys::from_json(nlohmann::json::parse(text, nullptr, false));
  if (keys) return std::move(keys->keys);
  return fail(Errc::FileCorrupt, "the journal's table meta holds no keys of the audit chain");
}

}  // namespace

Result<AuditLog> AuditLog::create(Database& database, const std::optional<audit::Link>& head,
                                  AuditLimits limits) {
  Statements to;
  to.insert = TRY(database.prepare(
      "INSERT INTO audit_record (sequence, at_unix_ms, content, hash) VALUES (?,?,?,?)"));
  to.set_source =
      TRY(database.prepare("REPLACE INTO usage_source (attachment, number) VALUES (?,?)"));
  to.forget_source = TRY(database.prepare("DELETE FROM usage_source WHERE attachment=?"));
  to.last_aged = TRY(database.prepare(
      "SELECT coalesce(max(sequence), 0) FROM audit_record WHERE sequence<=? AND at_unix_ms<?"));
  to.up_to =
      TRY(database.prepare("SELECT hash FROM audit_record WHERE sequence<=? ORDER BY sequence"));
  to.first_time =
      TRY(database.prepare("SELECT at_unix_ms FROM audit_record ORDER BY sequence LIMIT 1"));
  to.remove = TRY(database.prepare("DELETE FROM audit_record WHERE sequence<=?"));
  to.page =
      TRY(database.prepare("SELECT sequence, content, hash FROM audit_record WHERE sequence>?"
                           " ORDER BY sequence LIMIT ?"));
  to.set_meta = TRY(database.prepare("REPLACE INTO meta (name, value) VALUES (?,?)"));
  to.forget_meta = TRY(database.prepare("DELETE FROM meta WHERE name=?"));
  AuditLog log(std::move(to), TRY(TenantChains::create(database)), limits);
  TRY(log.load(database, head));
  return log;
}

Result<void> AuditLog::load(Database& database, const std::optional<audit::Link>& head) {
  std::optional<std::int64_t> last_unix_ms;
  Statement newest = TRY(database.prepare(
      "SELECT sequence, hash, at_unix_ms FROM audit_record ORDER BY sequence DESC LIMIT 1"));
  const bool has_records = TRY(newest.next());
  if (has_records) newest.read(now_.head.sequence, now_.head.hash, last_unix_ms.emplace());
  TRY(load_meta(database, last_unix_ms));
  TRY(load_tree(database));
  if (!has_records) now_.head = now_.removed;
  if (!head && now_.head.sequence > 0) {
    head_missing_after_ = now_.head.sequence;
    // If the disk is full, the next start does not find this value.
    (void)to_.set_meta.run(kHeadMissing, head_missing_after_);
  }
  if (head && head->sequence >= now_.head.sequence) now_.head = *head;
  if (limits_.trust_clock) last_unix_ms.reset();
  time_ = TrustedTime(last_unix_ms, longest_step(limits_.days));
  time_.look(unix_time_ms(), SystemClock().now());
  TRY(load_sources(database));
  rolled_back();
  return {};
}

Result<void> AuditLog::load_meta(Database& database, std::optional<std::int64_t>& last_unix_ms) {
  Statement meta = TRY(database.prepare("SELECT name, value FROM meta"));
  while (TRY(meta.next())) {
    std::string name;
    meta.read(name);
    std::string text;
    if (name == "audit_removed_sequence") meta.read(now_.removed.sequence);
    if (name == "audit_removed_hash") meta.read(now_.removed.hash);
    if (name == kHeadMissing) meta.read(head_missing_after_);
    if (name == kGaps) meta.read(now_.gaps);
    if (name == kRemovedTree || name == kKeys) meta.read(text);
    if (name == kRemovedTree) now_.removed_tree = TRY(parse_tree(text));
    if (name == kKeys) key_links_ = TRY(parse_links(text));
    time_is_stored_ = time_is_stored_ || name == kTrustedTime;
    if (name == kTrustedTime) meta.read(last_unix_ms.emplace());
  }
  return {};
}

/// Computes the tree from the stored one, or from that of the removed records if that is newer.
Result<void> AuditLog::load_tree(Database& database) {
  now_.tree = now_.removed_tree;
  std::uint64_t sequence = now_.removed.sequence;
  Statement stored = TRY(database.prepare(
      "SELECT substr(value, 1, instr(value, ' ') - 1), substr(value, instr(value, ' ') + 1)"
      " FROM meta WHERE name=?"));
  if (TRY(stored.query(kTree))) {
    std::uint64_t stored_sequence = 0;
    std::string text;
    stored.read(stored_sequence, text);
    audit::MerkleFrontier tree = TRY(parse_tree(text));
    if (stored_sequence > sequence) {
      sequence = stored_sequence;
      now_.tree = std::move(tree);
    }
  }
  Statement later =
      TRY(database.prepare("SELECT hash FROM audit_record WHERE sequence>? ORDER BY sequence"));
  std::string hash;
  for (bool more = TRY(later.query(sequence)); more; more = TRY(later.next())) {
    later.read(hash);
    now_.tree.append(leaf_of(hash));
  }
  return {};
}

Result<void> AuditLog::load_sources(Database& database) {
  Statement sources = TRY(database.prepare("SELECT attachment, number FROM usage_source"));
  while (TRY(sources.next())) {
    AttachmentId worker;
    std::uint64_t number = 0;
    sources.read(worker, number);
    numbers_[worker] = number;
  }
  return {};
}

Result<AuditLog::Appended> AuditLog::append_fields(nlohmann::json fields) {
  const std::int64_t now_ms = unix_time_ms();
  fields["at_unix_ms"] = now_ms;
  time_.look(now_ms, SystemClock().now());
  audit::Record record = audit::next_record(next_.head, std::move(fields));
  TRY(to_.insert.run(record.sequence, now_ms, record.content, record.hash));
  next_.head = {.sequence = record.sequence, .hash = record.hash};
  next_.tree.append(leaf_of(record.hash));
  ++appended_;
  changed_ = true;
  return Appended{std::move(record.hash), now_ms};
}

Result<AuditLog::Appended> AuditLog::append_of(const std::string& tenant, std::string_view kind,
                                               nlohmann::json fields) {
  fields["record"] = kind;
  fields.update(tenants_.next_place(tenant).to_json());
  return append_fields(std::move(fields));
}

Result<void> AuditLog::append(const LeaseGrantedRow& row) {
  wire::LeaseGrantedRecord record = row.record;
  record.granted_unix_ms = unix_ms_of(row.at_boottime_ns);
  Appended appended = TRY(append_of(record.tenant, "lease_granted", record.to_json()));
  tenants_.append(
      record.tenant,
      {.hash = std::move(appended.hash), .unix_ms = appended.unix_ms, .opens = record.opens});
  return {};
}

Result<void> AuditLog::append(const LeaseErasedRow& row) {
  wire::LeaseErasedRecord record = row.record;
  record.revoked_unix_ms = unix_ms_if_known(row.revoked_boottime_ns);
  record.fenced_unix_ms = unix_ms_if_known(row.fenced_boottime_ns);
  Appended appended = TRY(append_of(record.tenant, "lease_erased", record.to_json()));
  tenants_.append(record.tenant, {.hash = std::move(appended.hash),
                                  .unix_ms = appended.unix_ms,
                                  .before = row.before,
                                  .after = record.state});
  return {};
}

Result<void> AuditLog::append(wire::AuditGapRecord gap) {
  gap.until_unix_ms = unix_time_ms();
  nlohmann::json fields = gap.to_json();
  fields["record"] = "audit_gap";
  TRY(append_fields(std::move(fields)));
  return to_.set_meta.run(kGaps, ++next_.gaps);
}

Result<void> AuditLog::append(const AuditKeyRow& row) {
  wire::AuditKeys keys;
  keys.keys = row.links;
  changed_ = true;
  TRY(to_.set_meta.run(kKeys, keys.to_json().dump()));
  if (!row.record) return {};
  nlohmann::json fields = row.record->to_json();
  fields["record"] = "audit_key";
  fields["previous_key"] = row.record->previous;  // `previous` becomes the hash of a record
  TRY(append_fields(std::move(fields)));
  return {};
}

Result<void> AuditLog::append(const UsageRow& row) {
  const wire::UsageRecord& usage = row.usage;
  std::uint64_t& newest = next_numbers_[row.worker];
  if (usage.number <= newest) return {};
  newest = usage.number;
  TRY(to_.set_source.run(row.worker, usage.number));
  nlohmann::json fields{
      {"record", "usage_record"},
      {"tenant", usage.tenant.value},
      {"request", usage.request.value},
      {"lease", to_string(usage.lease)},
      {"lease_known", row.lease_known},
      {"worker", row.worker_name},
      {"attachment", row.worker.value},
      {"number", usage.number},
      {"prompt_tokens", usage.prompt_tokens},
      {"cached_tokens", usage.cached_tokens},
      {"generated_tokens", usage.generated_tokens},
      {"reason", usage.reason},
      {"submitted_unix_ms", unix_ms_of(usage.submitted_boottime_ns)},
      {"duration_ms", ms_between(usage.submitted_boottime_ns, usage.ended_boottime_ns)}};
  if (usage.first_token_boottime_ns != 0) {
    fields["first_token_ms"] =
        ms_between(usage.submitted_boottime_ns, usage.first_token_boottime_ns);
  }
  if (!row.api_key.value.empty()) fields["key"] = row.api_key.value;
  TRY(append_fields(std::move(fields)));
  return {};
}

Result<void> AuditLog::append(const RevocationRow& row) {
  TRY(append_fields({{"record", "revocation"},
                     {"lease", to_string(row.lease)},
                     {"scope", wire::name(row.scope)},
                     {"tenant", row.tenant.value},
                     {"worker", row.worker_name},
                     {"reason", name(row.reason)},
                     {"revoked_unix_ms", unix_ms_of(row.at_boottime_ns)}}));
  return {};
}

Result<void> AuditLog::forget(AttachmentId worker) {
  if (next_numbers_.erase(worker) == 0) return {};
  changed_ = true;
  return to_.forget_source.run(worker);
}

Result<void> AuditLog::finish() {
  if (appended_ == 0) return {};
  TRY(tenants_.write());
  TRY(store_tree());
  return removes_ ? remove_excess() : Result<void>{};
}

Result<void> AuditLog::store_tree() {
  if (next_.tree.size() / kStoredLeaves == now_.tree.size() / kStoredLeaves) return {};
  return to_.set_meta.run(kTree, std::to_string(next_.head.sequence) + ' ' + next_.tree.text());
}

Result<void> AuditLog::remove_excess() {
  const std::uint64_t most = next_.removed.sequence + 2 * appended_ + kRemovedBeyond;
  const std::uint64_t kept = next_.head.sequence - next_.removed.sequence;
  std::uint64_t through = kept > limits_.records ? next_.head.sequence - limits_.records : 0;
  if (limits_.days > 0) {
    TRY(note_time());
    const std::int64_t now_ms = std::min(time_.unix_ms(), unix_time_ms());
    const std::int64_t oldest_ms = now_ms - std::int64_t{limits_.days} * kMsPerDay;
    std::uint64_t aged = 0;
    if (TRY(to_.last_aged.query(most, oldest_ms))) to_.last_aged.read(aged);
    to_.last_aged.reset();
    through = std::max(through, aged);
  }
  through = std::min(through, most);
  if (through <= next_.removed.sequence) return {};
  return remove_through(through);
}

/// Stores the trusted time while the clock is not trusted. A trusted clock needs no row, because
/// the newest record has the time.
Result<void> AuditLog::note_time() {
  const bool is_stored = std::exchange(time_is_stored_, time_.ahead_ms() != 0);
  if (time_is_stored_) return to_.set_meta.run(kTrustedTime, time_.unix_ms());
  return is_stored ? to_.forget_meta.run(kTrustedTime) : Result<void>{};
}

Result<void> AuditLog::remove_through(std::uint64_t sequence) {
  audit::Link removed{.sequence = sequence, .hash = next_.removed.hash};
  for (bool more = TRY(to_.up_to.query(sequence)); more; more = TRY(to_.up_to.next())) {
    to_.up_to.read(removed.hash);
    next_.removed_tree.append(leaf_of(removed.hash));
  }
  to_.up_to.reset();
  TRY(to_.remove.run(sequence));
  TRY(to_.set_meta.run(kRemovedTree, next_.removed_tree.text()));
  TRY(to_.set_meta.run("audit_removed_sequence", removed.sequence));
  TRY(to_.set_meta.run("audit_removed_hash", removed.hash));
  next_.removed = std::move(removed);
  if (head_missing_after_ == 0 || sequence < head_missing_after_) return {};
  head_missing_after_ = 0;
  return to_.forget_meta.run(kHeadMissing);
}

void AuditLog::committed() {
  if (!changed_) return;
  now_ = next_;
  tenants_.committed();
  numbers_ = next_numbers_;
  appended_ = 0;
  changed_ = false;
}

void AuditLog::rolled_back() {
  next_ = now_;
  tenants_.rolled_back();
  next_numbers_ = numbers_;
  appended_ = 0;
  changed_ = false;
}

Result<wire::AuditHead> AuditLog::signed_part(const std::optional<std::string>& tenant) {
  wire::AuditHead head{.size = now_.tree.size(),
                       .root = to_hex(now_.tree.root()),
                       .sequence = now_.head.sequence,
                       .hash = now_.head.hash,
                       .removed_size = now_.removed_tree.size(),
                       .removed_sequence = now_.removed.sequence,
                       .signed_unix_ms = unix_time_ms(),
                       .gaps = now_.gaps};
  if (TRY(to_.first_time.query())) to_.first_time.read(head.first_kept_unix_ms);
  to_.first_time.reset();
  if (!tenant) return head;
  const wire::TenantHead* found = tenants_.find(*tenant);
  if (found == nullptr) {
    return fail(Errc::UnknownTenant,
                fmt::format("tenant {} has had no lease; see `brokerctl tenants`", *tenant));
  }
  head.tenant = *found;
  return head;
}

Result<wire::AuditPage> AuditLog::page(const wire::AuditList& request) {
  wire::AuditPage page{.removed_sequence = now_.removed.sequence,
                       .removed_hash = now_.removed.hash,
                       .head_sequence = now_.head.sequence,
                       .head_hash = now_.head.hash,
                       .head_missing_after = head_missing_after(),
                       .clock_ahead_ms = clock_ahead_ms()};
  if (now_.removed_tree.size() != 0) page.removed_tree = now_.removed_tree.text();
  Statement& rows = to_.page;
  bool more = TRY(rows.query(request.after, request.limit));
  for (std::size_t size_bytes = 0; more && size_bytes < wire::AuditPage::kMaxBytes;
       more = TRY(rows.next())) {
    wire::AuditRecordView& view = page.records.emplace_back();
    rows.read(view.sequence, view.content, view.hash);
    size_bytes += view.content.size();
  }
  rows.reset();
  return page;
}

}  // namespace leasehold::journal
