/// A test environment for decide(): real lease words, worker segments and proofs, but no sockets
/// and a manual clock.
///
/// Effects are recorded. Memory effects are answered at once; workers answer when the test calls
/// `answer_…`, or at once with `workers_answer`.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "broker/decide/core.hpp"
#include "broker/recovery/recovery.hpp"
#include "broker/server/event_log.hpp"
#include "broker/supervise/quiet_observer.hpp"
#include "ipc/table/lease_table.hpp"
#include "tests/support/exited_process.hpp"
#include "tests/support/memory_ledger.hpp"

namespace leasehold {

inline constexpr std::uint64_t kMiB = 1ull << 20;
/// Blocks of 256 KiB: an extent is 2 MiB and holds 8.
inline constexpr std::uint64_t kTestBlockBytes = 256 * 1024;
inline constexpr ConnectionId kOperator{1};
inline constexpr ConnectionId kHolder{2};
inline constexpr ConnectionId kWorkerSocket{10};
inline constexpr ConnectionId kReturnSocket{20};  ///< Of a resuming worker.
inline constexpr const char* kReason =
    "the worker was checked";  ///< For releases of quarantined memory.

BrokerConfig small_config(Duration worker_timeout = {});

/// Method and parameters as text. Instantiated in world.cpp, so that tests do not include JSON.
template <class Message>
std::string fingerprint(const Message& message);

using testing::exit_of;

class World {
 public:
  explicit World(const BrokerConfig& config = small_config());

  /// What survives a broker besides its journal.
  struct Survivors {
    bool table = true;  ///< Kept by a service manager, with the worker segments.
    bool same_boot = true;
    std::vector<ProcessExit> exited_workers;
    std::set<ProcessIdentity> exited_holders;
    std::set<RegionId> regions;
  };
  /// A broker started after the one of `before`, which must not be used any more.
  World(World& before, const Survivors& survivors, const BrokerConfig& config = small_config());

  State state;
  ManualClock clock;
  LeaseTable table;
  QuietObserver quiet;
  EventLog log;

  bool workers_answer = true;        ///< Workers map grants and unmap fenced leases at once.
  bool workers_answer_pings = true;  ///< Workers answer pings at once.
  std::int64_t caller_pid = 1000;    ///< Of all calls.
  bool memory_fails = false;         ///< No memory object can be created.
  bool regions_wait = false;         ///< Regions are created when the test posts RegionLent.
  bool seal_fails = false;
  bool clear_fails = false;             ///< Device memory cannot be cleared.
  std::set<ExtentId> still_allocating;  ///< On a device: not yet allocated, cannot be cleared.
  bool disk_full = false;               ///< The journal refuses grants, operator actions and usage.
  std::set<ExtentId> touched;           ///< Extents written to after their punch.
  std::optional<Event> before_verify;   ///< Posted before the next ExtentsVerified.
  std::uint64_t region_bytes = 0;       ///< Allocated in a region after its scrub.

  std::vector<Effect> effects;           ///< Performed since the last `forget_effects`.
  std::deque<effect::SendGrant> grants;  ///< Not answered yet, like the three below.
  std::deque<effect::SendSettle> settles;
  std::deque<effect::SendUnmap> unmaps;
  std::deque<effect::SendReclaim> reclaims;
  std::deque<effect::SendFill> fills;
  std::map<CallId, Result<Answer>> answers;
  journal::Image journal;        ///< What the next broker would start from.
  testing::MemoryLedger ledger;  ///< Of the audit records that were written.
  std::set<ExtentId> objects;    ///< Extents that have a memory object.
  std::vector<std::string> warnings;

  /// Decides the event and all events that follow, then checks the quiet watches.
  void post(Event event);
  void advance(Duration by);
  /// The broker stalls for `gap`, then continues.
  void stall(Duration gap);
  void forget_effects() { effects.clear(); }

  template <class Message>
  CallId call(ConnectionId connection, Message message, std::uint32_t uid = 0);

  /// The answer's body, as the type the test expects; fails the test otherwise.
  template <class Body>
  Body answer(CallId call) const;
  Errc refusal(CallId call) const { return error_of(call).code; }
  const Error& error_of(CallId call) const;

  // Setup shared by most tests.
  AttachmentId attach_worker(const std::string& name, ConnectionId connection,
                             std::uint64_t block_bytes = kTestBlockBytes);
  void admit_tenant(const std::string& name, std::uint32_t max_blocks = 1024);
  CallId acquire(const std::string& tenant, std::uint32_t blocks = 8,
                 ConnectionId holder = kHolder);
  LeaseId acquired(const std::string& tenant, std::uint32_t blocks = 8,
                   ConnectionId holder = kHolder);
  CallId revoke(LeaseId lease);

  /// Changes the state as recovery does after a restart with the table kept.
  void restart(Duration grace = std::chrono::seconds(5));

  // Actions of worker threads.
  void begin_unit(AttachmentId worker, Touches touches, std::uint32_t thread = 0);
  void end_unit(AttachmentId worker, std::uint32_t thread = 0);

  // Replies of workers.
  void answer_grant(bool mapped = true);
  void answer_settle(bool settled = true);
  void answer_unmap();

  LeaseRecord& record(LeaseId lease) { return **state.leases.find(lease); }
  std::string proof_of(LeaseId lease);

  template <class Wanted>
  std::vector<Wanted> performed() const;
  /// Journal rows of one kind that were written since the last `forget_effects`.
  template <class Wanted>
  std::vector<Wanted> rows() const;
  /// Events of one kind that the broker recorded, oldest first.
  template <class Wanted>
  std::vector<Wanted> recorded() const;

  void perform(const effect::CreateExtents& effect);
  void perform(const effect::Journal& effect);
  void perform(const effect::PublishGrant& effect);
  void perform(const effect::StoreWords& effect);
  void perform(const effect::SetDeadline& effect);
  void perform(const effect::SetDrainDeadline& effect);
  void perform(const effect::BindWorker& effect);
  void perform(const effect::ForgetWorker& effect);
  void perform(const effect::SendGrant& effect);
  void perform(const effect::SendSettle& effect);
  void perform(const effect::SendUnmap& effect);
  void perform(const effect::SendPing& effect);
  void perform(const effect::SendReclaim& effect);
  void perform(const effect::SendFill& effect);
  void perform(const effect::BeginQuietWatch& effect);
  void perform(const effect::ClearExtents& effect);
  void perform(const effect::VerifyExtents& effect);
  void perform(const effect::CreateRegion& effect);
  void perform(const effect::ShareRegion& effect);
  void perform(const effect::SealRegion& effect);
  void perform(const effect::ScrubRegion& effect);
  void perform(const effect::Reply& effect);
  void perform(const effect::ReplyWhenJournaled& effect);
  void perform(const effect::AppendEvent& effect);
  void perform(const effect::Warn& effect);
  // Only recorded:
  void perform(const effect::ResumeWorker&) {}
  void perform(const effect::SendQuota&) {}
  void perform(const effect::SendSampling&) {}
  void perform(const effect::SendAdmission&) {}
  void perform(const effect::SendAsleep&) {}
  void perform(const effect::PunchExtents&) {}
  void perform(const effect::CloseRegion&) {}
  void perform(const effect::KillWorker&) {}
  void perform(const effect::NotifyHolder&) {}
  void perform(const effect::NotifyDraining&) {}
  void perform(const effect::NotifyAgent&) {}
  void perform(const effect::NotifyAdapters&) {}
  void perform(const effect::SendAdapterOrder&) {}

 private:
  World(Recovered recovered, World& before, bool table_kept);
  struct WorkerSegment {
    WorkerSegmentReader reader;
    WorkerSegmentWriter writer;
    std::uint64_t seq = 0;
  };
  void settle();
  /// Records the effects and performs them.
  void record_and_perform(std::span<const Effect> decided);

  std::map<AttachmentId, std::unique_ptr<WorkerSegment>> segments_;
  std::deque<Event> queue_;
  bool grant_unwritten_ = false;
  bool unwritten_ = false;
  std::uint64_t next_call_ = 1;
  std::uint64_t next_request_ = 1;
};

template <class Message>
CallId World::call(ConnectionId connection, Message message, std::uint32_t uid) {
  const CallId id{next_call_++};
  Caller caller{.call = id,
                .connection = connection,
                .pid = caller_pid,
                .uid = uid,
                .is_operator = connection == kOperator};
  if constexpr (requires { message.request_id; } && !std::is_same_v<Message, wire::WorkerAttach>) {
    if (message.request_id.value.empty()) {
      message.request_id.value = "request-" + std::to_string(next_request_++);
    }
    caller.request_id = message.request_id;
    caller.fingerprint = fingerprint(message);
  }
  post(Call<Message>{std::move(caller), std::move(message)});
  return id;
}

template <class Body>
Body World::answer(CallId call) const {
  const Result<Answer>& found = answers.at(call);
  if (!found) throw std::runtime_error("refused: " + found.error().detail);
  return std::get<Body>(found->body);
}

template <class Wanted>
std::vector<Wanted> World::performed() const {
  std::vector<Wanted> found;
  for (const Effect& effect : effects) {
    if (const auto* wanted = std::get_if<Wanted>(&effect)) found.push_back(*wanted);
  }
  return found;
}

template <class Wanted>
std::vector<Wanted> World::rows() const {
  std::vector<Wanted> found;
  for (const auto& written : performed<effect::Journal>()) {
    for (const journal::Row& row : written.batch.rows)
      if (const auto* wanted = std::get_if<Wanted>(&row)) found.push_back(*wanted);
  }
  return found;
}

template <class Wanted>
std::vector<Wanted> World::recorded() const {
  std::vector<Wanted> found;
  for (const NumberedEvent& event : log.after(0, EventLog::kCapacity)) {
    if (const auto* wanted = std::get_if<Wanted>(&event.stamped.event)) found.push_back(*wanted);
  }
  return found;
}

/// One worker, and the tenant "a".
struct ServingWorld : World {
  explicit ServingWorld(const BrokerConfig& config = small_config()) : World(config) {
    admit_tenant("a");
  }
  AttachmentId worker = attach_worker("w0", kWorkerSocket);
};

/// The tenant also holds a lease of one extent.
struct LeasedWorld : ServingWorld {
  explicit LeasedWorld(const BrokerConfig& config = small_config()) : ServingWorld(config) {
    forget_effects();
  }
  LeaseId lease = acquired("a");
  ExtentId extent = record(lease).extents.at(0);
  ExtentState extent_state() { return state.extents.find(extent)->state; }
};

}  // namespace leasehold
