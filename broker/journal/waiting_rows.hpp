/// Rows whose write failed. They are written with the next batch.
///
/// The newest row of an object replaces earlier ones. Rows of an object that ended before it was on
/// disk are dropped, so that repeated refused grants do not accumulate rows. For the same reason
/// the audit records about a lease's memory become one granted and one erased row per lease, and
/// both are dropped for a lease whose first grant was refused. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "broker/books/rows.hpp"

namespace leasehold::journal {

class WaitingRows {
 public:
  /// The row is on disk.
  void note_recorded(const Row& row);
  /// The batch could not be written. A usage record does not wait, because its worker repeats it.
  void add(const Batch& batch, std::int64_t now_unix_ms);
  /// The waiting rows and the batch were written.
  void written(const Batch& batch);

  /// Calls `write` with each waiting row until it fails.
  Result<void> for_each(auto write) const {
    for (const auto& [key, row] : rows_) TRY(write(row));
    return {};
  }
  std::size_t size() const { return rows_.size(); }
  bool is_durable() const { return is_durable_; }
  /// True if a waiting row or one of the batch is of a lease on disk that is not Live any more.
  bool has_revocations(const Batch& batch) const;

  /// The records about leases that had to wait since all rows were written. `until_unix_ms` is 0.
  const std::optional<wire::AuditGapRecord>& gap() const { return gap_; }
  /// How many records about leases wait.
  std::uint64_t lease_records() const;

 private:
  /// The granted (0) or erased (1) row of a lease.
  using MemoryKey = std::pair<LeaseId, int>;
  /// Identifies what a newer row replaces: an object, or one of the rows that exist once (the index
  /// of its type, 0). No row replaces a record, which has the index of its type and a number.
  using Key = std::variant<TenantId, ApiKeyId, AdapterName, AttachmentId, LeaseId, ExtentId,
                           RegionId, std::pair<std::size_t, std::uint64_t>, MemoryKey>;
  Key key_of(const Row& row);
  void add(const LeaseGrantedRow& row, std::int64_t now_unix_ms);
  void add(const LeaseErasedRow& row, std::int64_t now_unix_ms);
  void note_gap(LeaseId lease, std::uint64_t wire::AuditGapRecord::* count,
                std::int64_t now_unix_ms);
  bool is_revocation(const Row& row) const;

  std::map<Key, Row> rows_;
  std::set<Key> recorded_;  ///< Leases, extents and regions that are on disk.
  bool is_durable_ = false;
  std::uint64_t records_ = 0;  ///< Number of records that had to wait.
  std::optional<wire::AuditGapRecord> gap_;
};

}  // namespace leasehold::journal
