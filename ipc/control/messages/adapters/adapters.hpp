/// Adapters (LoRA): operator → broker, worker → broker and broker → worker. The rules for all
/// messages are in ipc/control/messages.hpp.
///
/// An operator registers an adapter under a name that is unique over all tenants. Each
/// `adapter.add` of the name makes a new version. A worker that needs a version reads its file,
/// gets a lease of scope Adapter for it and fills the lease's extents with the matrices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::wire {

inline constexpr std::size_t kMaxAdaptersPerOwner = 64;  ///< Of one tenant, and shared ones.
inline constexpr std::size_t kMaxAdapters =
    16'384;  ///< Names ever registered, removed ones included.

// ---------------------------------------------------------------- operator → broker

/// `adapter.add`: registers a file under a name, for one tenant or shared by all; the broker does
/// not open it. A name that exists gets a new version: running texts keep theirs. Exactly one of
/// `tenant` and `shared` is given. Reply: AdapterAdded. Errors: UnknownTenant; QuotaAdapters
/// (kMaxAdaptersPerOwner, kMaxAdapters); BadRequest for a name that has another owner, or
/// under which a worker serves a model; DiskFull: the change took effect, but is not on disk yet.
struct AdapterAdd : Message<AdapterAdd> {
  static constexpr std::string_view kMethod = "adapter.add";
  AdapterName adapter;
  std::string file;  ///< TextRule::RelativePath, below the worker's directory of adapters.
  std::optional<TenantId> tenant;
  bool shared = false;  ///< May be missing.
  bool pinned = false;  ///< Workers do not evict it for lack of memory. May be missing.
  RequestId request_id;
};

struct AdapterAdded : Message<AdapterAdded> {
  std::uint32_t version = 0;  ///< The first is 1.
};

/// `adapter.remove`: new requests get UnknownAdapter. Running ones keep the version, which their
/// worker closes after the last one. Reply: Empty. Errors: UnknownAdapter, DiskFull as above.
struct AdapterRemove : Message<AdapterRemove> {
  static constexpr std::string_view kMethod = "adapter.remove";
  AdapterName adapter;
  RequestId request_id;
};

/// `adapter.load`: the worker reads the adapter before the first request needs it. The broker
/// passes the call on with `tenant` set. Reply: Empty, once the adapter is loaded. Errors:
/// UnknownAdapter; UnknownWorker, NoModelLoaded or BrokerLost for a worker that is not ready; those
/// of loading.
struct AdapterLoad : Message<AdapterLoad> {
  static constexpr std::string_view kMethod = "adapter.load";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::None;
  AdapterName adapter;
  std::string worker;
  std::optional<TenantId> tenant;  ///< Its owner, set by the broker; missing: shared.
  RequestId request_id;
};

/// `adapter.unload`: the worker closes the adapter when no sequence uses it. The broker passes the
/// call on. Reply: Empty, at once. Errors: as of `adapter.load`, without those of loading.
struct AdapterUnload : Message<AdapterUnload> {
  static constexpr std::string_view kMethod = "adapter.unload";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Call;
  AdapterName adapter;
  std::string worker;
  RequestId request_id;
};

/// `adapter.list`: adapters in the order of their names, as pages of AdapterView (operator.hpp).
struct AdapterList : Message<AdapterList> {
  static constexpr std::string_view kMethod = "adapter.list";
  std::optional<TenantId> tenant;  ///< Only those of this tenant.
  std::optional<AdapterName> after;
  std::uint32_t limit = 1000;  ///< See TenantList.
};

/// A lease on an adapter's memory.
struct AdapterLeaseView {
  LeaseId lease;
  std::string worker;
  std::uint32_t version = 0;
  LeaseState state = LeaseState::Live;
  bool filled = false;  ///< The worker has read the file.
  std::uint64_t size_bytes = 0;
};

/// An item of `adapter.list`: the newest version, and the leases of all versions.
struct AdapterView : Message<AdapterView> {
  AdapterName adapter;
  std::uint32_t version = 0;
  std::optional<TenantId> tenant;  ///< Missing: shared.
  std::string file;
  bool pinned = false;
  std::optional<std::string> digest;  ///< Missing until a worker has opened this version.
  bool removed = false;  ///< It is shown until its last lease has ended. May be missing.
  std::vector<AdapterLeaseView> leases;
};

// ---------------------------------------------------------------- worker → broker

/// `adapter.resolve`, a query of a worker: the version that a new request of the tenant uses.
/// Reply: AdapterResolved. Errors: UnknownAdapter, also for an adapter of another tenant.
struct AdapterResolve : Message<AdapterResolve> {
  static constexpr std::string_view kMethod = "adapter.resolve";
  std::optional<TenantId> tenant;  ///< Missing: only a shared adapter is found.
  AdapterName adapter;
};

struct AdapterResolved : Message<AdapterResolved> {
  AdapterName adapter;
  std::uint32_t version = 0;
  std::string file;                ///< TextRule::RelativePath
  std::optional<TenantId> tenant;  ///< The owner; missing: shared.
  bool pinned = false;
  std::optional<std::string> digest;  ///< Missing until a worker has opened this version.
};

/// `adapter.visible`, a query of a worker: what the tenant may name in a request. Reply:
/// AdaptersVisible, in the order of the names.
struct AdapterVisible : Message<AdapterVisible> {
  static constexpr std::string_view kMethod = "adapter.visible";
  TenantId tenant;
};

struct VisibleAdapter {
  AdapterName adapter;
  std::uint32_t version = 0;
  bool operator==(const VisibleAdapter&) const = default;
};

struct AdaptersVisible : Message<AdaptersVisible> {
  std::vector<VisibleAdapter> adapters;
};

/// `adapter.open`: a lease for the memory of a version, of ⌈size_bytes ÷ extent size⌉ extents. The
/// first call for a version pins its digest. Reply: AdapterOpened, after the worker has mapped the
/// extents, which are zero. Checked in this order: UnknownAdapter (removed, another owner than
/// `tenant`, an earlier version); FileCorrupt, scope Adapter (another digest than the pinned one);
/// IllegalTransition (the worker has a lease of this version); QuotaAdapters; PoolExhausted.
struct AdapterOpen : Message<AdapterOpen> {
  static constexpr std::string_view kMethod = "adapter.open";
  std::optional<TenantId> tenant;  ///< As in AdapterResolve.
  AdapterName adapter;
  std::uint32_t version = 0;
  std::string digest;  ///< SHA-256 of the file, in lower hex; TextRule::HexKey.
  std::uint64_t size_bytes = 0;
  RequestId request_id;
};

struct AdapterOpened : Message<AdapterOpened> {
  LeaseId lease;  ///< Has no deadline.
};

/// `adapter.filled`: the extents hold the matrices. A lease that is not filled ends at a broker
/// restart. Reply: Empty. Errors: UnknownLease, LeaseRevoked, PermissionDenied (another worker's).
struct AdapterFilled : Message<AdapterFilled> {
  static constexpr std::string_view kMethod = "adapter.filled";
  LeaseId lease;
};

/// `adapter.close`: no sequence uses the adapter, and none will under this lease. The lease ends
/// with `model_unloaded`. Reply: Empty, also when it has ended already. Errors: UnknownLease,
/// PermissionDenied as above.
struct AdapterClose : Message<AdapterClose> {
  static constexpr std::string_view kMethod = "adapter.close";
  LeaseId lease;
};

// ---------------------------------------------------------------- broker → worker

/// Notification `adapters.changed`: an adapter was added, changed or removed. The worker forgets
/// what it has resolved.
struct AdaptersChanged : Empty {
  static constexpr std::string_view kMethod = "adapters.changed";
};

}  // namespace leasehold::wire
