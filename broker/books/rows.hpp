/// What the journal knows of the broker's state, as values: one row per object.
///
/// A row says how its object stands after a decision; it replaces the one before it. The states of
/// extents are kept only where they do not follow from their lease: Draining and Scrubbing of a
/// lease that is Revoked or Fenced are not written.
/// Units: times are boot-time nanoseconds and mean something only under the same boot id.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "broker/books/extents.hpp"
#include "broker/books/ids.hpp"
#include "broker/books/weights.hpp"
#include "broker/books/workers.hpp"
#include "common/process.hpp"
#include "ipc/control/messages_operator.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::journal {

struct TenantRow {
  wire::TenantAdmit policy;  ///< Without `request_id`.
};

/// An attached worker, until it has exited and its last lease is closed.
struct WorkerRow {
  AttachmentId id;
  WorkerId index;
  std::string name;
  ProcessIdentity process;
  std::uint32_t uid = 0;
  WorkerState state = WorkerState::Attached;
  std::string model;
  std::string address;
  std::uint32_t blocks_per_extent = 0;
  bool untrusted = false;  ///< It wrote to memory that had been taken from it.
};

/// The call that a lease answers; with it a repeated acquire finds its lease over a restart.
struct RequestKey {
  std::uint32_t uid = 0;
  std::string request_id;  ///< Empty: none.
  std::uint64_t digest = 0;
  auto operator<=>(const RequestKey&) const = default;
};

/// A lease, until its memory is back.
struct LeaseRow {
  LeaseId id;
  AttachmentId worker;
  wire::LeaseScope scope = wire::LeaseScope::Tenant;
  LeaseState state = LeaseState::Live;
  RevokeReason reason = RevokeReason::None;
  std::int64_t revoked_ns = 0;
  std::int64_t fenced_ns = 0;
  std::string proof;  ///< Of the fence, by name.
  TenantId tenant;
  ProcessIdentity holder;
  RequestKey request;
  std::int64_t ttl_ns = 0;
  std::int64_t deadline_ns = 0;
  std::int64_t drain_deadline_ns = 0;
  std::int64_t last_deadline_ns = 0;
  std::uint32_t charged_blocks = 0;
  RegionId region;
  std::string model;  ///< Of an engine lease, for people; and the part of it.
  std::string part;
  LeaseId replaces;  ///< Generation 0: none; as the next.
  LeaseId replaced_by;
  std::int64_t granted_ns = 0;
};

/// What is known of memory that is Quarantined; of Held memory, whose it is; else all zero.
struct QuarantineColumns {
  AttachmentId worker;
  std::string worker_name;
  std::int64_t since_ns = 0;
  std::uint64_t allocated_bytes = 0;
  QuarantineReason why = QuarantineReason::Touched;
  bool operator==(const QuarantineColumns&) const = default;
};

struct ExtentRow {
  ExtentId id;
  LeaseId lease;
  ExtentState state =
      ExtentState::Owned;  ///< Owned, Scrubbing (given back early), Quarantined, Held.
  std::uint64_t size_bytes = 0;
  std::uint64_t device = 0;  ///< Of the memory object; 0 when it could not be made.
  std::uint64_t inode = 0;
  QuarantineColumns quarantine{};
};

struct RegionRow {
  RegionId id;
  WeightsKey key;
  std::uint64_t size_bytes = 0;
  RegionState state = RegionState::Loading;
  AttachmentId loader;
  QuarantineColumns quarantine{};
};

/// No number above these was ever used; each is raised, durably, before the first one beyond it is.
/// They are written twice: here, and in a file that stays when the journal is moved away.
struct Reserved {
  std::uint64_t generations = 0;
  std::uint64_t attachments = 0;
  std::uint64_t extents = 0;
  std::uint64_t regions = 0;
  auto operator<=>(const Reserved&) const = default;
};

/// The size all extents of the pool have; chosen once.
struct ShapeRow {
  std::uint64_t extent_size_bytes = 0;
};

/// What an operator did or tried. Never changed, and never read back but to be shown: `brokerctl
/// audit`.
struct OperatorActionRow {
  std::int64_t at_boottime_ns = 0;
  std::uint32_t uid = 0;
  std::string action;  ///< "admit", "revoke", "drain", "quarantine_release"
  std::string object;  ///< "lease:17.4", "tenant:acme", "extent:5", "region:3"
  std::string reason;  ///< In the operator's words; empty where none are asked for.
  bool done = true;    ///< False: it was refused.
};

/// The start of the machine that the rows belong to.
struct BootRow {
  std::string boot_id;
};

struct WorkerGone {
  AttachmentId id;
};
struct LeaseGone {
  LeaseId id;
};
struct ExtentGone {
  ExtentId id;
};
struct RegionGone {
  RegionId id;
};

using Row = std::variant<TenantRow, WorkerRow, LeaseRow, ExtentRow, RegionRow, Reserved, ShapeRow,
                         OperatorActionRow, BootRow, WorkerGone, LeaseGone, ExtentGone, RegionGone>;

/// Everything a journal holds: what a broker starts from.
struct Image {
  std::string boot_id;
  Reserved reserved;
  std::uint64_t extent_size_bytes = 0;  ///< 0: not chosen yet.
  std::map<TenantId, TenantRow> tenants;
  std::map<AttachmentId, WorkerRow> workers;
  std::map<LeaseId, LeaseRow> leases;
  std::map<ExtentId, ExtentRow> extents;
  std::map<RegionId, RegionRow> regions;
};

/// Enters one row into an image, as the journal does on disk.
void apply(Image& image, const Row& row);

/// A stable 64-bit digest of a call's fingerprint (FNV-1a). Ids belong to a user, so a collision
/// deceives nobody but its maker.
std::uint64_t digest(std::string_view fingerprint);

/// The rows of one decision: one transaction.
struct Batch {
  std::vector<Row> rows;
  bool grants = false;   ///< Something is lent: without these rows on disk it may not be.
  bool durable = false;  ///< Numbers are reserved, an operator spoke: must outlive a power cut.
};

}  // namespace leasehold::journal
