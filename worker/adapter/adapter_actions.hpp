/// What an AdapterBook decides, as values. An AdapterLoader performs the actions in their order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "common/content_digest.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "worker/schedule/adapter_use.hpp"

namespace leasehold {

/// One attempt to load a version; never reused, so a late answer to an earlier attempt is known.
using AdapterLoadId = StrongId<struct AdapterLoadTag>;
/// A caller that waits for an adapter.
using AdapterTicket = StrongId<struct AdapterTicketTag>;

/// The version that a new request of a tenant uses (wire::AdapterResolved).
struct ResolvedAdapter {
  std::string name;
  std::uint32_t version = 0;
  std::string file;               ///< Relative to the worker's directory of adapters.
  std::optional<TenantId> owner;  ///< Nothing: shared by all tenants.
  bool is_pinned = false;

  bool operator==(const ResolvedAdapter&) const = default;
};

/// The content of an adapter's file.
struct AdapterContent {
  ContentDigest digest;
  std::uint64_t size_bytes = 0;    ///< Of all matrices.
  std::uint64_t memory_bytes = 0;  ///< Of the extents that hold them.

  bool operator==(const AdapterContent&) const = default;
};

/// Calls `adapter.resolve`; answered by `resolved`.
struct ResolveAdapter {
  TenantId tenant;  ///< Empty: only a shared adapter is found.
  std::string name;
  bool operator==(const ResolveAdapter&) const = default;
};

/// Opens and hashes the file; answered by `file_opened`. The file stays open until DropAdapterFile.
struct OpenAdapterFile {
  AdapterLoadId load;
  std::string file;
  bool operator==(const OpenAdapterFile&) const = default;
};

/// Calls `adapter.open`; answered by `lease_opened`.
struct OpenAdapterLease {
  AdapterLoadId load;
  TenantId owner;  ///< Empty for a shared adapter.
  std::string name;
  std::uint32_t version = 0;
  AdapterContent content;
  bool operator==(const OpenAdapterLease&) const = default;
};

/// Copies the matrices into the lease's extents; answered by `copied`.
struct CopyAdapter {
  AdapterLoadId load;
  LeaseId lease;
  bool operator==(const CopyAdapter&) const = default;
};

/// Calls `adapter.filled`; answered by `confirmed`.
struct ConfirmAdapter {
  AdapterLoadId load;
  LeaseId lease;
  bool operator==(const ConfirmAdapter&) const = default;
};

/// Stops copying and closes the file of a load. Not answered.
struct DropAdapterFile {
  AdapterLoadId load;
  bool operator==(const DropAdapterFile&) const = default;
};

/// Calls `adapter.close`. Not answered.
struct CloseAdapterLease {
  LeaseId lease;
  bool operator==(const CloseAdapterLease&) const = default;
};

/// Gives a caller of `use` the result.
struct AnswerAdapterUse {
  AdapterTicket ticket;
  Result<AdapterUse> use;
  bool operator==(const AnswerAdapterUse&) const = default;
};

/// Reports that a version was loaded.
struct ReportAdapterLoaded {
  AdapterUse loaded;
  bool operator==(const ReportAdapterLoaded&) const = default;
};

/// Why a loaded adapter left the worker.
enum class AdapterEviction : std::uint8_t {
  Room,      ///< Another adapter needed its memory or its place in a quota.
  Unloaded,  ///< An operator asked for it.
  Replaced,  ///< Its version was replaced or removed, and no request uses it any more.
  Revoked    ///< Its lease ended.
};

std::string_view name(AdapterEviction why);

/// Reports that a version left the worker.
struct ReportAdapterEvicted {
  AdapterUse evicted;
  AdapterEviction why = AdapterEviction::Room;
  bool operator==(const ReportAdapterEvicted&) const = default;
};

using AdapterAction = std::variant<ResolveAdapter, OpenAdapterFile, OpenAdapterLease, CopyAdapter,
                                   ConfirmAdapter, DropAdapterFile, CloseAdapterLease,
                                   AnswerAdapterUse, ReportAdapterLoaded, ReportAdapterEvicted>;

}  // namespace leasehold
