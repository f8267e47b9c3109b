/// Everything a decision can ask for, as values, and the one way they get done.
///
/// Effects are performed in order. The order inside a revocation is a promise: the words and the
/// counter first, everything else after.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "broker/books/answers.hpp"
#include "broker/books/rows.hpp"
#include "ipc/control/events.hpp"
#include "ipc/segment/launch_site.hpp"

namespace leasehold::effect {

/// Writes one transaction. Stands before the words and answers that need it, after words that fall.
/// Extents that are lent get their memory first, so that their rows can name it. When the batch
/// grants and cannot be written, whatever would leave the broker under it is refused instead, as if
/// there were no memory. → GrantAnswered, RegionLent
struct Journal {
  journal::Batch batch;
  bool when_idle = false;  ///< Only after everything that follows from this decision.
};

/// Stores a Live word with its deadline (zero: none).
struct PublishGrant {
  LeaseId lease;
  TimePoint deadline;
};

/// Lowers words of one worker and moves its counter once.
struct StoreWords {
  WorkerId worker;
  struct Flip {
    LeaseId lease;
    LeaseState to = LeaseState::Revoked;
    RevokeReason reason = RevokeReason::None;
  };
  std::vector<Flip> flips;
  TimePoint at;
};

struct SetDeadline {
  LeaseId lease;
  TimePoint deadline;
};

struct SetDrainDeadline {
  LeaseId lease;
  TimePoint deadline;
};

/// The worker that called is admitted: keep its process, message and eventfd under this id.
struct BindWorker {
  AttachmentId worker;
  ConnectionId connection;
};

/// A worker the broker knew before it was started again is back on this connection.
struct ResumeWorker {
  AttachmentId worker;
  ConnectionId connection;
};

/// The worker is Gone: drop what was kept for it.
struct ForgetWorker {
  AttachmentId worker;
};

/// Sends `lease.grant`; makes memory objects for extents that have none. → GrantAnswered
struct SendGrant {
  AttachmentId worker;
  wire::LeaseGrant grant;
};

/// Sends `lease.settle`: launches on a device outlast what the worker's message shows. →
/// SettleAnswered
struct SendSettle {
  AttachmentId worker;
  LeaseId lease;
};

/// Sends `lease.unmap`. → UnmapAnswered
struct SendUnmap {
  AttachmentId worker;
  LeaseId lease;
};

/// Sends `worker.ping`. → PingAnswered, or nothing.
struct SendPing {
  AttachmentId worker;
};

/// Sends `lease.reclaim` on behalf of a call. → ReclaimAnswered
struct SendReclaim {
  AttachmentId worker;
  LeaseId lease;
  CallId call;
  std::uint32_t count = 1;
};

/// Takes one snapshot for all of them and waits without blocking. → QuietObserved
struct BeginQuietWatch {
  AttachmentId worker;
  Touches scope = Touches::TenantMemory;
  std::vector<LeaseId> leases;
};

/// Gives the pages back to the kernel; whoever still maps them reads zeros.
struct PunchExtents {
  std::vector<ExtentId> extents;
};

/// Zeros memory of a device that its worker has unmapped; what is still being made is given up.
/// → ExtentsCleared
struct ClearExtents {
  std::vector<ExtentId> extents;
};

/// Reads what is allocated, then closes the object where that is nothing. Of a device: releases it
/// and looks whether the driver's free figure rises by as much. → ExtentsVerified
struct VerifyExtents {
  std::vector<ExtentId> extents;
  bool close_anyway = false;  ///< Nobody else maps them: what is allocated goes with the object.
};

/// → RegionLent
struct CreateRegion {
  LeaseId lease;  ///< Its first.
  RegionId region;
  std::uint64_t size_bytes = 0;
};

/// One more lease on a region there is: nothing to make, but its row may be refused. → RegionLent
struct ShareRegion {
  LeaseId lease;
};

/// → RegionSealed
struct SealRegion {
  RegionId region;
};

/// Punches, verifies, closes. For a region that was never sealed. → RegionScrubbed
struct ScrubRegion {
  RegionId region;
};

/// Closes a sealed region.
struct CloseRegion {
  RegionId region;
};

/// SIGKILL by pidfd.
struct KillWorker {
  AttachmentId worker;
};

struct Reply {
  CallId call;
  Result<Answer> answer;
};

/// Answers a call whose OK promises that it is remembered. Follows the Journal of its decision.
/// → JournalWritten
struct ReplyWhenJournaled {
  CallId call;
  Answer answer;
};

struct AppendEvent {
  events::Event event;
  TimePoint at;
};

/// Something an operator should read; a sentence and logfmt.
struct Warn {
  std::string message;
};

}  // namespace leasehold::effect

namespace leasehold {

using Effect =
    std::variant<effect::Journal, effect::PublishGrant, effect::StoreWords, effect::SetDeadline,
                 effect::SetDrainDeadline, effect::BindWorker, effect::ResumeWorker,
                 effect::ForgetWorker, effect::SendGrant, effect::SendSettle, effect::SendUnmap,
                 effect::SendPing, effect::SendReclaim, effect::BeginQuietWatch,
                 effect::PunchExtents, effect::ClearExtents, effect::VerifyExtents,
                 effect::CreateRegion, effect::ShareRegion, effect::SealRegion, effect::ScrubRegion,
                 effect::CloseRegion, effect::KillWorker, effect::Reply, effect::ReplyWhenJournaled,
                 effect::AppendEvent, effect::Warn>;

/// The one door from decisions to the world: a `perform` for each kind of effect. What an effect
/// leads to comes back as an event, never as a return value.
template <class Performer>
void perform_all(std::span<const Effect> effects, Performer& performer) {
  for (const Effect& effect : effects) {
    std::visit([&performer](const auto& each) { performer.perform(each); }, effect);
  }
}

}  // namespace leasehold
