/// The broker's state as journal rows: one value per object.
///
/// A row is the state of its object after a decision and replaces the previous row. The extent
/// states that follow from a Revoked or Fenced lease (Draining, Retained, Scrubbing) are not
/// written. Units: times are nanoseconds since boot and valid under the same boot id only.
/// `kTable` names a row's table; journal/row_columns.hpp names its columns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "broker/books/extents.hpp"
#include "broker/books/ids.hpp"
#include "broker/books/weights.hpp"
#include "broker/books/workers.hpp"
#include "common/machine/process.hpp"
#include "ipc/control/messages/audit.hpp"
#include "ipc/control/messages/keys.hpp"
#include "ipc/control/messages/operator.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::journal {

/// The tokens of one day of UTC.
struct DayUse {
  std::int64_t day = 0;  ///< Days since 1970.
  std::uint64_t tokens = 0;

  /// A day other than the counted one has no tokens yet.
  std::uint64_t tokens_on(std::int64_t today) const { return day == today ? tokens : 0; }
  void add(std::uint64_t more, std::int64_t today) {
    tokens = tokens_on(today) + more;
    day = today;
  }
  bool operator==(const DayUse&) const = default;
};

/// Which limits of a tenant of a cell are in force; see wire::CellAdmit.
struct PartRevision {
  std::uint64_t incarnation = 0;
  std::uint64_t revision = 0;
  bool operator==(const PartRevision&) const = default;
};

struct TenantRow {
  static constexpr std::string_view kTable = "tenant";
  wire::TenantPolicy policy;
  bool draining = false;
  std::uint64_t reserved_bytes = 0;   ///< See Tenant (tenants.hpp).
  std::int64_t admitted_unix_ms = 0;  ///< See Tenant (tenants.hpp).
  DayUse use;
  PartRevision part{};
};

/// An API key of a tenant. Only the hash of the key is stored (ipc/control/tokens/api_key.hpp).
struct ApiKeyRow {
  static constexpr std::string_view kTable = "api_key";
  ApiKeyId id;
  TenantId tenant;
  std::string hash;
  std::string name;  ///< May be empty.
  std::int64_t created_unix_ms = 0;
  std::int64_t expires_unix_ms = 0;    ///< 0: never.
  std::int64_t last_used_unix_ms = 0;  ///< In whole minutes. 0: never.
  wire::KeyLimits limits;
  DayUse use;
};

/// The newest version of an adapter (adapter_registry.hpp).
struct AdapterRow {
  static constexpr std::string_view kTable = "adapter";
  AdapterName id;
  std::uint32_t version = 0;
  TenantId tenant;  ///< Its owner; empty: shared.
  std::string file;
  bool pinned = false;
  std::string digest;  ///< SHA-256 in hex; empty until a worker has opened this version.
  bool removed = false;
  bool operator==(const AdapterRow&) const = default;
};

/// A worker. The row is kept until the worker has exited and its last lease is closed.
struct WorkerRow {
  static constexpr std::string_view kTable = "worker";
  AttachmentId id;
  WorkerId index;
  std::string name;
  ProcessIdentity process;
  std::uint32_t uid = 0;
  WorkerState state = WorkerState::Attached;
  std::string model;
  std::string address;
  std::uint32_t blocks_per_extent = 0;
  bool untrusted = false;  ///< It wrote to memory after its fence.
  bool draining = false;
  bool operator==(const WorkerRow&) const = default;
};

/// Identifies the acquire that created a lease, so that a repeated acquire finds the lease after a
/// restart.
struct RequestKey {
  std::uint32_t uid = 0;
  std::string request_id;  ///< Empty: none.
  std::uint64_t digest = 0;
  auto operator<=>(const RequestKey&) const = default;
};

/// A lease that is not closed. LeaseRecord (lease_book.hpp) describes most members.
struct LeaseRow {
  static constexpr std::string_view kTable = "lease";
  LeaseId id;
  AttachmentId worker;
  wire::LeaseScope scope = wire::LeaseScope::Tenant;
  LeaseState state = LeaseState::Live;
  RevokeReason reason = RevokeReason::None;
  std::int64_t revoked_ns = 0;
  std::int64_t fenced_ns = 0;
  std::string proof;  ///< Name of the fence proof.
  TenantId tenant;
  ProcessIdentity holder;
  RequestKey request;
  std::int64_t ttl_ns = 0;
  std::int64_t deadline_ns = 0;
  std::int64_t drain_deadline_ns = 0;
  RevokeReason drain_reason = RevokeReason::DrainDeadline;
  std::int64_t last_deadline_ns = 0;
  std::uint32_t charged_blocks = 0;
  RegionId region;
  /// Name of an engine lease's model, or of the adapter that computes a shared lease's text.
  std::string model;
  /// Part of the weights, name of a shared lease's text, or name of an adapter.
  std::string part;
  LeaseId replaces;  ///< Here and in replaced_by, generation 0 means none.
  LeaseId replaced_by;
  std::int64_t granted_ns = 0;
  ApiKeyId api_key;  ///< The API key of the acquire; empty: none.
  bool scavenger = false;
  std::uint32_t adapter_version = 0;  ///< Of adapter leases, and of the adapter of a text.
  bool filled = false;                ///< Adapter leases only.
  bool operator==(const LeaseRow&) const = default;
};

/// Details of a Quarantined object. A Held object has only `worker`; for any other, all members are
/// zero.
struct QuarantineColumns {
  AttachmentId worker;
  std::string worker_name;
  std::int64_t since_ns = 0;
  std::uint64_t allocated_bytes = 0;
  QuarantineReason why = QuarantineReason::Touched;
  bool operator==(const QuarantineColumns&) const = default;
};

struct ExtentRow {
  static constexpr std::string_view kTable = "extent";
  ExtentId id;
  LeaseId lease;
  /// Owned, Scrubbing (of a live lease), Quarantined or Held.
  ExtentState state = ExtentState::Owned;
  std::uint64_t size_bytes = 0;
  std::uint64_t device = 0;  ///< Device number of the memory object; 0 if it was not created.
  std::uint64_t inode = 0;
  QuarantineColumns quarantine{};
  MemoryPool pool = MemoryPool::Kv;
  TenantId tenant;  ///< Of the lease; empty for shared memory.
  bool operator==(const ExtentRow&) const = default;
};

struct RegionRow {
  static constexpr std::string_view kTable = "region";
  RegionId id;
  WeightsKey key;
  std::uint64_t size_bytes = 0;
  RegionState state = RegionState::Loading;
  AttachmentId loader;
  QuarantineColumns quarantine{};
  bool operator==(const RegionRow&) const = default;
};

/// High-water marks: ids above them were never used. A mark is raised on disk before the first id
/// above it is used. The marks are also written to a second file, which survives the loss of the
/// journal.
struct HighWaterMarks {
  static constexpr std::string_view kTable = "reserved";
  std::uint64_t generations = 0;
  std::uint64_t attachments = 0;
  std::uint64_t extents = 0;
  std::uint64_t regions = 0;
  auto operator<=>(const HighWaterMarks&) const = default;
};

/// The extent size of both pools.
struct ExtentSizeRow {
  static constexpr std::string_view kTable = "shape";
  std::uint64_t extent_size_bytes = 0;
};

/// An action of an operator; see events::OperatorAction. The row is never changed; `brokerctl
/// actions` shows it.
struct OperatorActionRow {
  std::int64_t at_boottime_ns = 0;
  std::uint32_t uid = 0;
  std::string action;
  std::string object;
  std::string reason;
  bool done = true;
};

/// A worker's report about a finished request: a record of the audit chain. The record is never
/// changed. The journal drops a record whose number the worker has reported before. A row whose
/// write failed is not kept, because the worker repeats the report.
struct UsageRow {
  AttachmentId worker;
  std::string worker_name;
  wire::UsageRecord usage;
  /// False: the slot has a newer lease, so the report was not checked against the lease.
  bool lease_known = true;
  ApiKeyId api_key;  ///< The key of the lease; empty: none, or the lease is not known.
};

/// The end of a lease that its holder did not release: a record of the audit chain. The record is
/// never changed.
struct RevocationRow {
  LeaseId lease;
  wire::LeaseScope scope = wire::LeaseScope::Tenant;
  TenantId tenant;
  std::string worker_name;
  RevokeReason reason = RevokeReason::None;
  std::int64_t at_boottime_ns = 0;
};

/// Memory that a decision lent under a lease: a record of the audit chain, which is never changed.
/// The journal sets the times of the record.
struct LeaseGrantedRow {
  wire::LeaseGrantedRecord record;
  std::int64_t at_boottime_ns = 0;
};

/// What a decision settled of a lease's memory; see LeaseGrantedRow.
struct LeaseErasedRow {
  wire::LeaseErasedRecord record;
  wire::ErasureState before = wire::ErasureState::Open;
  std::int64_t revoked_boottime_ns = 0;  ///< 0: not revoked, or before the machine restarted.
  std::int64_t fenced_boottime_ns = 0;   ///< As revoked_boottime_ns.
};

/// A new key of the audit chain.
struct AuditKeyRow {
  std::vector<wire::DsseEnvelope> links;  ///< Of all keys; see AuditSigner.
  std::optional<wire::AuditKey> record;   ///< Nothing for the first key, which needs no record.
};

/// Identifies the boot under which the rows were written.
struct BootRow {
  static constexpr std::string_view kTable = "boot";
  std::string boot_id;
};

/// The id of the object that a row describes.
template <class ObjectRow>
  requires requires(ObjectRow& row) { row.id; }
auto& id_of(ObjectRow& row) {
  return row.id;
}
inline TenantId& id_of(TenantRow& row) {
  return row.policy.tenant;
}
inline const TenantId& id_of(const TenantRow& row) {
  return row.policy.tenant;
}
template <class ObjectRow>
using IdOf = std::remove_cvref_t<decltype(id_of(std::declval<ObjectRow&>()))>;

/// The object no longer exists: its row is erased.
template <class ObjectRow>
struct Gone {
  IdOf<ObjectRow> id;
};
using TenantGone = Gone<TenantRow>;
using ApiKeyGone = Gone<ApiKeyRow>;
using WorkerGone = Gone<WorkerRow>;
using LeaseGone = Gone<LeaseRow>;
using ExtentGone = Gone<ExtentRow>;
using RegionGone = Gone<RegionRow>;

using Row = std::variant<TenantRow, ApiKeyRow, AdapterRow, WorkerRow, LeaseRow, ExtentRow,
                         RegionRow, HighWaterMarks, ExtentSizeRow, OperatorActionRow, UsageRow,
                         RevocationRow, LeaseGrantedRow, LeaseErasedRow, AuditKeyRow, BootRow,
                         TenantGone, ApiKeyGone, WorkerGone, LeaseGone, ExtentGone, RegionGone>;

/// The content of a journal from which a broker restores its state.
struct Image {
  std::string boot_id;
  HighWaterMarks reserved;
  std::uint64_t extent_size_bytes = 0;  ///< 0: not chosen yet.
  std::map<TenantId, TenantRow> tenants;
  std::map<ApiKeyId, ApiKeyRow> api_keys;
  std::map<AdapterName, AdapterRow> adapters;
  std::map<AttachmentId, WorkerRow> workers;
  std::map<LeaseId, LeaseRow> leases;
  std::map<ExtentId, ExtentRow> extents;
  std::map<RegionId, RegionRow> regions;
};

/// The objects of one kind.
template <class ObjectRow>
std::map<IdOf<ObjectRow>, ObjectRow>& objects(Image& image) {
  return std::get<std::map<IdOf<ObjectRow>, ObjectRow>&>(
      std::tie(image.tenants, image.api_keys, image.adapters, image.workers, image.leases,
               image.extents, image.regions));
}

/// Applies one row to an image, as the journal does on disk.
void apply(Image& image, const Row& row);

/// A 64-bit digest of a call's fingerprint (FNV-1a), stable because it is journaled. Request ids
/// belong to a user, so a forged collision harms only its author.
std::uint64_t digest(std::string_view fingerprint);

/// The rows of one decision: one transaction.
struct Batch {
  std::vector<Row> rows;
  /// The batch lends memory. If it cannot be written, each grant in it is refused.
  bool has_grants = false;
  bool durable = false;  ///< The batch must survive a power cut.
  /// The batch is synced to the disk later; the writer does not wait for that.
  bool synced_later = false;
};

}  // namespace leasehold::journal
