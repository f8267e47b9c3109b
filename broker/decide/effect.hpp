/// The effects that a decision can request, as values.
///
/// Effects are performed in order. A revocation stores the words and moves the counter first. "→ X"
/// names the event that reports the result.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "broker/books/answers.hpp"
#include "broker/books/rows.hpp"
#include "ipc/control/events.hpp"
#include "ipc/control/messages/adapters/adapters_yield.hpp"
#include "ipc/segment/launch_site.hpp"

namespace leasehold::effect {

/// Creates the host memory of extents that a lease takes. It comes directly before the Journal
/// effect, because the rows identify the memory. If a creation fails, the grant is refused.
/// → GrantAnswered
struct CreateExtents {
  std::vector<ExtentId> extents;
  std::uint64_t size_bytes = 0;
  /// No text waits for the memory, and its lease may never use it: it gets no pages yet.
  bool may_stay_idle = false;
};

/// Writes one transaction. It comes before grants, fences and answers that depend on it, and after
/// revocations. If a granting batch cannot be written, its grants are refused. → GrantAnswered,
/// RegionLent
struct Journal {
  journal::Batch batch;
  bool when_idle = false;  ///< Write it after all work that follows from this decision.
};

/// Stores a Live lease word with its deadline (zero: none).
struct PublishGrant {
  LeaseId lease;
  TimePoint deadline;
};

/// Stores Revoked or Fenced words of one worker, then moves its counter once.
struct StoreWords {
  WorkerId worker;
  struct LeaseChange {
    LeaseId lease;
    LeaseState to = LeaseState::Revoked;
    RevokeReason reason = RevokeReason::None;
  };
  std::vector<LeaseChange> changes;
  TimePoint at;
};

struct SetDeadline {
  LeaseId lease;
  TimePoint deadline;
};

/// Stores the drain word, then sends `lease.draining`.
struct SetDrainDeadline {
  LeaseId lease;
  TimePoint deadline;
  AttachmentId worker;
};

/// Binds a new worker's process, segment and wakeup_fd to this id.
struct BindWorker {
  AttachmentId worker;
  ConnectionId connection;
};

/// Binds a worker from before a broker restart to this connection.
struct ResumeWorker {
  AttachmentId worker;
  ConnectionId connection;
};

/// Drops everything kept for a worker that is Gone.
struct ForgetWorker {
  AttachmentId worker;
};

/// Sends `lease.grant` with the extents' descriptors. The device agent allocates its memory now, or
/// clears what was Held. → GrantAnswered
struct SendGrant {
  AttachmentId worker;
  wire::LeaseGrant grant;
};

/// Sends `tenant.quota`. No reply is needed: a worker that cannot receive it has lost its
/// connection and so its leases.
struct SendQuota {
  AttachmentId worker;
  wire::TenantQuota quota;
};

/// Sends `step.sample`. No reply is needed: a worker that cannot receive it has lost its
/// connection.
struct SendSampling {
  AttachmentId worker;
  wire::StepSampling sampling;
};

/// Sends `worker.admission`. No reply is needed: a worker that cannot receive it has lost its
/// connection, and gets it when it is ready again.
struct SendAdmission {
  AttachmentId worker;
  wire::WorkerAdmission admission;
};

/// Sends `worker.asleep`. No reply is needed, as for `worker.admission`.
struct SendAsleep {
  AttachmentId worker;
  wire::WorkerAsleep order;
};

/// Sends `lease.settle`, needed because kernels on a device run longer than the worker segment
/// shows. → SettleAnswered
struct SendSettle {
  AttachmentId worker;
  LeaseId lease;
};

/// Sends `lease.unmap`. → UnmapAnswered
struct SendUnmap {
  AttachmentId worker;
  LeaseId lease;
};

/// Sends `worker.ping`. → PingAnswered, or no event.
struct SendPing {
  AttachmentId worker;
};

/// Sends `lease.reclaim` on behalf of a call. → ReclaimAnswered
struct SendReclaim {
  AttachmentId worker;
  LeaseId lease;
  CallId call;
  std::uint32_t count = 1;
  MemoryPool pool = MemoryPool::Kv;
};

/// Sends `prefix.fill` with the text of a shared lease. → FillAnswered
struct SendFill {
  AttachmentId worker;
  wire::PrefixFill fill;
};

/// Sends `adapters.changed` or `adapters.yield`. No reply is needed: a worker that cannot receive
/// it has lost its connection, and gets the former when it is ready again.
struct NotifyAdapters {
  AttachmentId worker;
  std::variant<wire::AdaptersChanged, wire::AdaptersYield> notice{};
};

/// Passes `adapter.load` or `adapter.unload` on to the worker. → AdapterOrderAnswered
struct SendAdapterOrder {
  AttachmentId worker;
  CallId call;
  std::variant<wire::AdapterLoad, wire::AdapterUnload> order;
};

/// Takes one snapshot of the worker segment for all these leases and watches, without blocking,
/// until the units in it have ended (QuietWatches::observe). → QuietObserved
struct BeginQuietWatch {
  AttachmentId worker;
  Touches scope = Touches::TenantMemory;
  std::vector<LeaseId> leases;
};

/// Returns the extents' pages to the kernel. A process that still maps them reads zeros.
struct PunchExtents {
  std::vector<ExtentId> extents;
  MemoryPool pool = MemoryPool::Kv;
};

/// Zeros device memory that its worker has unmapped; cancels allocations in progress. All extents
/// are of the KV pool. → ExtentsCleared
struct ClearExtents {
  std::vector<ExtentId> extents;
};

/// Reads how many bytes are allocated in each extent and closes the object if there are none. On a
/// device, releases the memory and compares the driver's count of free bytes. → ExtentsVerified
struct VerifyExtents {
  std::vector<ExtentId> extents;
  /// Close objects that are not empty, too: no process maps them, so that frees their memory.
  bool close_anyway = false;
  MemoryPool pool = MemoryPool::Kv;
};

/// Creates the region's memory. → RegionLent
struct CreateRegion {
  LeaseId lease;  ///< The first lease on the region.
  RegionId region;
  std::uint64_t size_bytes = 0;
};

/// Shares an existing region with the lease. → RegionLent
struct ShareRegion {
  LeaseId lease;
};

/// Makes the region read-only. → RegionSealed
struct SealRegion {
  RegionId region;
};

/// Punches, verifies and closes a region that was never sealed. → RegionScrubbed
struct ScrubRegion {
  RegionId region;
};

/// Closes a sealed region.
struct CloseRegion {
  RegionId region;
};

/// Sends SIGKILL through the pidfd.
struct KillWorker {
  AttachmentId worker;
};

struct Reply {
  CallId call;
  Result<Answer> answer;
};

/// Answers a call whose success must be on disk. Comes after the Journal effect of the same
/// decision. → JournalWritten
struct ReplyWhenJournaled {
  CallId call;
  Answer answer;
};

/// Sends `lease.revoked` to the holder.
struct NotifyHolder {
  ConnectionId holder;
  wire::LeaseRevoked revoked;
};

/// Sends `lease.draining` to the holder.
struct NotifyDraining {
  ConnectionId holder;
  wire::LeaseDraining draining;
};

/// Sends `cell.part_changed` to the agent of the cell.
struct NotifyAgent {
  ConnectionId agent;
  wire::CellPartChanged changed;
};

struct AppendEvent {
  events::Event event;
  TimePoint at;
};

/// A warning for operators: a sentence, then fields in logfmt.
struct Warn {
  std::string message;
};

}  // namespace leasehold::effect

namespace leasehold {

using Effect =
    std::variant<effect::CreateExtents, effect::Journal, effect::PublishGrant, effect::StoreWords,
                 effect::SetDeadline, effect::SetDrainDeadline, effect::BindWorker,
                 effect::ResumeWorker, effect::ForgetWorker, effect::SendGrant, effect::SendQuota,
                 effect::SendSampling, effect::SendAdmission, effect::SendAsleep,
                 effect::SendSettle, effect::SendUnmap, effect::SendPing, effect::SendReclaim,
                 effect::SendFill, effect::NotifyAdapters, effect::SendAdapterOrder,
                 effect::BeginQuietWatch, effect::PunchExtents, effect::ClearExtents,
                 effect::VerifyExtents, effect::CreateRegion, effect::ShareRegion,
                 effect::SealRegion, effect::ScrubRegion, effect::CloseRegion, effect::KillWorker,
                 effect::Reply, effect::ReplyWhenJournaled, effect::NotifyHolder,
                 effect::NotifyDraining, effect::NotifyAgent, effect::AppendEvent, effect::Warn>;

/// Calls the performer's `perform` for each effect, in order. Results come back as events, never as
/// return values.
template <class Performer>
void perform_all(std::span<const Effect> effects, Performer& performer) {
  for (const Effect& effect : effects) {
    std::visit([&performer](const auto& each) { performer.perform(each); }, effect);
  }
}

}  // namespace leasehold
