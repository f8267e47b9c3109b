/// Everything that can happen to the broker, as values.
///
/// An event carries observations, not conclusions. Fence evidence arrives as proof objects that
/// only their observer can construct (broker/books/fence_proof.hpp).
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "broker/books/fence_proof.hpp"
#include "broker/books/request_book.hpp"
#include "common/machine/process.hpp"
#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {

template <class Message>
struct Call {
  Caller caller;
  Message message;
};

/// A connection closed. Its leases lose their holder; a worker on it becomes Lost, not Gone.
struct ConnectionClosed {
  ConnectionId connection;
};

/// The process at the other end of the connection exited, as its pidfd shows.
struct HolderExited {
  ConnectionId connection;
};

/// A process that held leases under the previous broker exited.
struct PreviousHolderExited {
  ProcessIdentity process;
};

/// The worker process exited.
struct WorkerExited {
  ProcessExit proof;
};

/// The worker answered one `lease.grant`: it mapped all of these extents, or none.
struct GrantAnswered {
  LeaseId lease;
  std::vector<ExtentId> extents;
  std::optional<Error> refused;
  bool sent = true;  ///< False: the grant never left the broker.
};

struct UnmapAnswered {
  LeaseId lease;
  std::optional<Error> refused;
};

/// The worker answered `lease.settle`. An error is not evidence.
struct SettleAnswered {
  LeaseId lease;
  std::optional<WorkerAck> proof;
  std::optional<Error> refused;
};

/// Device memory was zeroed, or could not be because the agent ended.
struct ExtentsCleared {
  struct Entry {
    ExtentId extent;
    std::optional<Error> refused{};
    /// The extent never reached a worker: its allocation failed or was cancelled.
    bool never_sent = false;
  };
  std::vector<Entry> entries;
};

/// The device agent ended and lost its handles. Workers keep what they imported.
struct DeviceLost {
  std::string why;
};

/// A new agent serves the same device.
struct DeviceRecovered {};

/// The worker answered a ping.
struct PingAnswered {
  AttachmentId worker;
};

struct ReclaimAnswered {
  LeaseId lease;
  CallId call;
  Result<std::vector<ExtentId>> extents;
  MemoryPool pool = MemoryPool::Kv;  ///< The pool of the request.
};

/// The worker answered `prefix.fill`.
struct FillAnswered {
  LeaseId lease;
  Result<wire::PrefixFilled> filled;
};

/// The worker answered `adapter.load` or `adapter.unload`.
struct AdapterOrderAnswered {
  CallId call;
  std::optional<Error> refused;
};

/// The words of these leases changed from Live at time `at`, which the table also holds. The clocks
/// of the revocation start at that time.
struct WordsStored {
  std::vector<LeaseId> leases;
  TimePoint at;
};

/// All units announced when the words were stored have ended.
struct QuietObserved {
  std::vector<LaunchQuiet> proofs;
  TimePoint seen_at;  ///< When quiet was observed. Zero: now.
};

/// The bytes allocated in punched extents after their worker unmapped them or exited. On a device:
/// the bytes that the driver did not report as free after the release.
struct ExtentsVerified {
  struct Entry {
    ExtentId extent;
    std::uint64_t allocated_bytes = 0;
    bool closed = false;  ///< The object was closed, which freed what was allocated.
  };
  std::vector<Entry> entries;
};

/// The region has memory, and the rows of region and lease are in the journal; or the lease is
/// refused.
struct RegionLent {
  LeaseId lease;
  std::optional<Error> refused;
};

struct RegionSealed {
  RegionId region;
  std::optional<Error> refused;
};

struct RegionScrubbed {
  RegionId region;
  std::uint64_t allocated_bytes = 0;
};

/// Entries of the lease table that another process changed. They are already repaired.
struct TableTampered {
  std::vector<TableEntry> entries;
};

/// An event that a worker reported; its form is checked, its content is not.
struct WorkerReported {
  ConnectionId connection;
  events::StampedEvent report;
};

/// A worker reported its use of a divided quota; its form is checked, its content is not.
struct UsageReported {
  ConnectionId connection;
  wire::TenantUsage usage;
};

/// A worker reported what it served a tenant; its form is checked, its content is not.
struct ServedReported {
  ConnectionId connection;
  wire::TenantServed served;
};

/// A worker reported that it drains and then exits.
struct DrainReported {
  ConnectionId connection;
};

/// A worker reported that it lost its weights or has them again.
struct WeightsReported {
  ConnectionId connection;
  wire::WorkerWeights weights;
};

/// A worker ended these requests for an operator.
struct RequestsCancelled {
  std::uint32_t uid = 0;
  std::string worker;
  std::vector<std::string> requests;  ///< Ids in the worker; from the worker, so not trusted.
};

/// The rows of a decision that has a ReplyWhenJournaled effect are on disk, or could not be
/// written.
struct JournalWritten {
  CallId call;
  Answer answer;
  std::optional<Error> refused;
};

/// The broker's loop did not run for `gap`. Precedes every event received afterwards.
struct BrokerStalled {
  Duration gap{};
};

/// The offset of the machine's clock from boot time: at the start, and whenever the clock was set.
struct ClockSet {
  Duration offset{};
};

/// Makes `decide` apply passed deadlines.
struct Tick {};

/// The configuration file was read again. Holds the members of BrokerConfig that may change.
struct ConfigReloaded {
  Duration reclaim_grace{};
  Duration adopt_grace{};
  std::uint32_t max_engine_leases = 0;
  std::uint32_t max_shared_blocks = 0;
  std::uint64_t max_shared_adapter_bytes = 0;
};

/// The broker stops.
struct Shutdown {};

using Event =
    std::variant<Call<wire::TenantAdmit>, Call<wire::TenantRemove>, Call<wire::KeyCreate>,
                 Call<wire::KeyUpdate>, Call<wire::KeyRevoke>, Call<wire::LeaseRevoke>,
                 Call<wire::LeaseDrain>, Call<wire::LeaseAcquire>, Call<wire::LeaseReplace>,
                 Call<wire::LeaseRenew>, Call<wire::LeaseRelease>, Call<wire::LeaseGrow>,
                 Call<wire::LeaseShrink>, Call<wire::WorkerAttach>, Call<wire::WorkerReady>,
                 Call<wire::WeightsOpen>, Call<wire::WeightsPublish>, Call<wire::LeaseAttach>,
                 Call<wire::LeaseDrained>, Call<wire::LeaseUndrain>, Call<wire::LeaseRedeliver>,
                 Call<wire::LeaseHold>, Call<wire::LeaseQuery>, Call<wire::QuarantineRelease>,
                 Call<wire::StepWatch>, Call<wire::WorkerStep>, Call<wire::PrefixPublish>,
                 Call<wire::WorkerReplace>, Call<wire::WorkerSleep>, Call<wire::WorkerWake>,
                 Call<wire::WeightsSleep>, Call<wire::WeightsWake>, Call<wire::UsageReport>,
                 Call<wire::CellAttach>, Call<wire::CellCeiling>, Call<wire::CellAdmit>,
                 Call<wire::AdapterAdd>, Call<wire::AdapterRemove>, Call<wire::AdapterLoad>,
                 Call<wire::AdapterUnload>, Call<wire::AdapterOpen>, Call<wire::AdapterFilled>,
                 Call<wire::AdapterClose>, AdapterOrderAnswered, FillAnswered, ConnectionClosed,
                 HolderExited, PreviousHolderExited, WorkerExited, GrantAnswered, SettleAnswered,
                 UnmapAnswered, PingAnswered, ReclaimAnswered, WordsStored, QuietObserved,
                 ExtentsCleared, ExtentsVerified, DeviceLost, DeviceRecovered, RegionLent,
                 RegionSealed, RegionScrubbed, TableTampered, WorkerReported, UsageReported,
                 ServedReported, DrainReported, WeightsReported, RequestsCancelled, JournalWritten,
                 BrokerStalled, ClockSet, Tick, ConfigReloaded, Shutdown>;

}  // namespace leasehold
