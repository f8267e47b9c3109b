#include "broker/journal/audit_log.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/clock.hpp"

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

/// How long a broker can be stopped before its operator must confirm that the clock is right: a
/// quarter of the retention time, at most a week. If the clock is wrong, the oldest records are
/// removed that much too early.
Duration longest_step(std::uint32_t days) {
  return std::min<Duration>(std::chrono::days(days) / 4, std::chrono::days(7));
}

std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return now / std::chrono::milliseconds(1);
}

std::int64_t ms_between(std::int64_t from_boottime_ns, std::int64_t to_boottime_ns) {
  return (to_boottime_ns - from_boottime_ns) / kNsPerMs;
}

/// Converts a time since boot, which would mean nothing after the next boot.
std::int64_t unix_ms_of(std::int64_t boottime_ns) {
  return unix_ms() - ms_between(boottime_ns, SystemClock().now().boottime_ns);
}

}  // namespace

Result<AuditLog> AuditLog::create(Database& database, const KnownHead& head, AuditLimits limits) {
  Statements to;
  to.insert = TRY(database.prepare(
      "INSERT INTO audit_record (sequence, at_unix_ms, content, hash) VALUES (?,?,?,?)"));
  to.set_source =
      TRY(database.prepare("REPLACE INTO usage_source (attachment, number) VALUES (?,?)"));
  to.forget_source = TRY(database.prepare("DELETE FROM usage_source WHERE attachment=?"));
  to.last_aged = TRY(database.prepare(
      "SELECT coalesce(max(sequence), 0) FROM audit_record WHERE sequence<=? AND at_unix_ms<?"));
  to.last_up_to = TRY(database.prepare(
      "SELECT hash FROM audit_record WHERE sequence<=? ORDER BY sequence DESC LIMIT 1"));
  to.remove = TRY(database.prepare("DELETE FROM audit_record WHERE sequence<=?"));
  to.page =
      TRY(database.prepare("SELECT sequence, content, hash FROM audit_record WHERE sequence>?"
                           " ORDER BY sequence LIMIT ?"));
  to.set_meta = TRY(database.prepare("REPLACE INTO meta (name, value) VALUES (?,?)"));
  to.forget_meta = TRY(database.prepare("DELETE FROM meta WHERE name=?"));
  AuditLog log(std::move(to), limits);
  TRY(log.load(database, head));
  return log;
}

Result<void> AuditLog::load(Database& database, const KnownHead& head) {
  std::optional<std::int64_t> last_unix_ms;
  Statement newest = TRY(database.prepare(
      "SELECT sequence, hash, at_unix_ms FROM audit_record ORDER BY sequence DESC LIMIT 1"));
  const bool has_records = TRY(newest.next());
  if (has_records) newest.read(head_.sequence, head_.hash, last_unix_ms.emplace());
  Statement meta = TRY(database.prepare("SELECT name, value FROM meta"));
  while (TRY(meta.next())) {
    std::string name;
    meta.read(name);
    if (name == "audit_removed_sequence") meta.read(removed_.sequence);
    if (name == "audit_removed_hash") meta.read(removed_.hash);
    if (name == kHeadMissing) meta.read(head_missing_after_);
    time_is_stored_ = time_is_stored_ || name == kTrustedTime;
    if (name == kTrustedTime) meta.read(last_unix_ms.emplace());
  }
  if (!has_records) head_ = removed_;
  if (head.is_missing && head_.sequence > 0) {
    head_missing_after_ = head_.sequence;
    // If the disk is full, the next start does not find this value.
    (void)to_.set_meta.run(kHeadMissing, head_missing_after_);
  }
  if (head.link.sequence >= head_.sequence) head_ = head.link;
  if (limits_.trust_clock) last_unix_ms.reset();
  time_ = TrustedTime(last_unix_ms, longest_step(limits_.days));
  time_.look(unix_ms(), SystemClock().now());
  Statement sources = TRY(database.prepare("SELECT attachment, number FROM usage_source"));
  while (TRY(sources.next())) {
    AttachmentId worker;
    std::uint64_t number = 0;
    sources.read(worker, number);
    numbers_[worker] = number;
  }
  rolled_back();
  return {};
}

Result<void> AuditLog::append_fields(nlohmann::json fields) {
  const std::int64_t now_ms = unix_ms();
  fields["at_unix_ms"] = now_ms;
  time_.look(now_ms, SystemClock().now());
  const audit::Record record = audit::next_record(next_head_, std::move(fields));
  TRY(to_.insert.run(record.sequence, now_ms, record.content, record.hash));
  next_head_ = {.sequence = record.sequence, .hash = record.hash};
  ++appended_;
  changed_ = true;
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
  return append_fields(std::move(fields));
}

Result<void> AuditLog::append(const RevocationRow& row) {
  return append_fields({{"record", "revocation"},
                        {"lease", to_string(row.lease)},
                        {"scope", wire::name(row.scope)},
                        {"tenant", row.tenant.value},
                        {"worker", row.worker_name},
                        {"reason", name(row.reason)},
                        {"revoked_unix_ms", unix_ms_of(row.at_boottime_ns)}});
}

Result<void> AuditLog::forget(AttachmentId worker) {
  if (next_numbers_.erase(worker) == 0) return {};
  changed_ = true;
  return to_.forget_source.run(worker);
}

Result<void> AuditLog::remove_excess() {
  if (appended_ == 0) return {};
  const std::uint64_t most = next_removed_.sequence + 2 * appended_ + kRemovedBeyond;
  const std::uint64_t kept = next_head_.sequence - next_removed_.sequence;
  std::uint64_t through = kept > limits_.records ? next_head_.sequence - limits_.records : 0;
  if (limits_.days > 0) {
    TRY(note_time());
    const std::int64_t now_ms = std::min(time_.unix_ms(), unix_ms());
    const std::int64_t oldest_ms = now_ms - std::int64_t{limits_.days} * kMsPerDay;
    std::uint64_t aged = 0;
    if (TRY(to_.last_aged.query(most, oldest_ms))) to_.last_aged.read(aged);
    to_.last_aged.reset();
    through = std::max(through, aged);
  }
  through = std::min(through, most);
  if (through <= next_removed_.sequence) return {};
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
  audit::Link removed{.sequence = sequence, .hash = next_removed_.hash};
  if (TRY(to_.last_up_to.query(sequence))) to_.last_up_to.read(removed.hash);
  to_.last_up_to.reset();
  TRY(to_.remove.run(sequence));
  TRY(to_.set_meta.run("audit_removed_sequence", removed.sequence));
  TRY(to_.set_meta.run("audit_removed_hash", removed.hash));
  next_removed_ = std::move(removed);
  if (head_missing_after_ == 0 || sequence < head_missing_after_) return {};
  head_missing_after_ = 0;
  return to_.forget_meta.run(kHeadMissing);
}

void AuditLog::committed() {
  if (!changed_) return;
  head_ = next_head_;
  removed_ = next_removed_;
  numbers_ = next_numbers_;
  appended_ = 0;
  changed_ = false;
}

void AuditLog::rolled_back() {
  next_head_ = head_;
  next_removed_ = removed_;
  next_numbers_ = numbers_;
  appended_ = 0;
  changed_ = false;
}

Result<wire::AuditPage> AuditLog::page(const wire::AuditList& request) {
  wire::AuditPage page{.removed_sequence = removed_.sequence,
                       .removed_hash = removed_.hash,
                       .head_sequence = head_.sequence,
                       .head_hash = head_.hash,
                       .head_missing_after = head_missing_after(),
                       .clock_ahead_ms = clock_ahead_ms()};
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
