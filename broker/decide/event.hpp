/// Everything that can happen to the broker's state, as values.
///
/// Each carries what the outside saw and nothing that was concluded from it; evidence arrives as
/// proof objects that only its witness can make (broker/books/fence_proof.hpp).
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "broker/books/fence_proof.hpp"
#include "broker/books/request_book.hpp"
#include "common/process.hpp"
#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {

template <class Message>
struct Call {
  Caller caller;
  Message message;
};

/// A connection is over: its leases lose their holder; a worker on it is Lost, not Gone.
struct ConnectionClosed {
  ConnectionId connection;
};

/// The process at the other end exited, seen by its pidfd: counts as holder gone.
struct HolderExited {
  ConnectionId connection;
};

/// The same for a process that held leases under an earlier broker, and may not have claimed them.
struct PreviousHolderExited {
  ProcessIdentity process;
};

/// The worker's pidfd is readable.
struct WorkerExited {
  ProcessExit proof;
};

/// One `lease.grant` was answered: all of these extents are mapped, or none is.
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

/// `lease.settle` was answered: with evidence, or with an error, which is none.
struct SettleAnswered {
  LeaseId lease;
  std::optional<WorkerAck> proof;
  std::optional<Error> refused;
};

/// Memory of a device that its worker has unmapped holds zeros, or its agent is gone.
struct ExtentsCleared {
  struct Entry {
    ExtentId extent;
    std::optional<Error> refused{};
    bool never_sent = false;  ///< It was being made, or could not be: no worker ever had it.
  };
  std::vector<Entry> entries;
};

/// The device agent ended, and every handle it had with it. Workers keep what they imported.
struct DeviceLost {
  std::string why;
};

/// Another agent serves the same card.
struct DeviceRecovered {};

/// The worker is there.
struct PingAnswered {
  AttachmentId worker;
};

struct ReclaimAnswered {
  LeaseId lease;
  CallId call;
  Result<std::vector<ExtentId>> extents;
};

/// The words of these leases left Live: when, as it stands in the table. Clocks count from there.
struct WordsStored {
  std::vector<LeaseId> leases;
  TimePoint at;
};

/// Units that stood when the words went down are over.
struct QuietObserved {
  std::vector<LaunchQuiet> proofs;
  TimePoint seen_at;  ///< Zero: now.
};

/// What is left of punched extents, read after their worker unmapped them or exited. Of a device:
/// what the driver did not show as free again after they were released.
struct ExtentsVerified {
  struct Entry {
    ExtentId extent;
    std::uint64_t allocated_bytes = 0;
    bool closed = false;  ///< The object is gone, with what was allocated in it.
  };
  std::vector<Entry> entries;
};

/// The lease may leave the broker: its region has memory, and both are written down.
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

/// Lines of the lease table that somebody else had changed. They are repaired already.
struct TableTampered {
  std::vector<TableEntry> entries;
};

/// A worker's own report, already checked for form.
struct WorkerReported {
  ConnectionId connection;
  events::StampedEvent report;
};

/// What a call asked for holds; on disk, or why not.
struct JournalWritten {
  CallId call;
  Answer answer;
  std::optional<Error> refused;
};

/// The broker itself stood for so long, and heard nobody. Comes before whatever it hears then.
struct BrokerStalled {
  Duration gap{};
};

/// Time has passed; deadlines are looked at.
struct Tick {};

/// The broker was told to stop.
struct Shutdown {};

using Event =
    std::variant<Call<wire::TenantAdmit>, Call<wire::LeaseRevoke>, Call<wire::LeaseDrain>,
                 Call<wire::LeaseAcquire>, Call<wire::LeaseRenew>, Call<wire::LeaseRelease>,
                 Call<wire::LeaseGrow>, Call<wire::LeaseShrink>, Call<wire::WorkerAttach>,
                 Call<wire::WorkerReady>, Call<wire::WeightsOpen>, Call<wire::WeightsPublish>,
                 Call<wire::LeaseAttach>, Call<wire::LeaseRedeliver>, Call<wire::LeaseHold>,
                 Call<wire::QuarantineRelease>, ConnectionClosed, HolderExited,
                 PreviousHolderExited, WorkerExited, GrantAnswered, SettleAnswered, UnmapAnswered,
                 PingAnswered, ReclaimAnswered, WordsStored, QuietObserved, ExtentsCleared,
                 ExtentsVerified, DeviceLost, DeviceRecovered, RegionLent, RegionSealed,
                 RegionScrubbed, TableTampered, WorkerReported, JournalWritten, BrokerStalled, Tick,
                 Shutdown>;

}  // namespace leasehold
