/// The broker of the simulated machine: the real core, table and observers, with connections of the
/// machine instead of sockets. It is one fiber that may pause between any two effects and between
/// any two stores of a revocation.
///
/// When a broker dies, the next one begins with what persists: the committed part of the journal
/// and, where the service manager keeps descriptors, table, worker segments and published weights.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "broker/decide/core.hpp"
#include "broker/decide/effect_group.hpp"
#include "broker/memory/lent_memory.hpp"
#include "broker/recovery/recovery.hpp"
#include "broker/supervise/quiet_observer.hpp"
#include "ipc/table/lease_table.hpp"
#include "ipc/table/table_reader.hpp"
#include "tests/simulation/adapters/adapter_disk.hpp"
#include "tests/simulation/coverage.hpp"
#include "tests/simulation/judge.hpp"
#include "tests/support/exited_process.hpp"
#include "tests/support/fiber.hpp"
#include "tests/support/memory_ledger.hpp"
#include "worker/adapter/adapter_actions.hpp"

namespace leasehold::simulation {

using testing::exit_of;
using testing::Fiber;

inline constexpr std::uint64_t kExtentBytes = 2ull << 20;
inline constexpr std::uint64_t kBlockBytes = 256 * 1024;  // 8 in an extent
inline constexpr std::uint64_t kExtents = 9;
inline constexpr std::uint64_t kSwapExtents = 7;

/// Planted bugs. The judge must find each one.
struct PlantedBugs {
  bool eof_as_proof = false;           ///< A closed socket counts as an exit.
  bool ack_before_drain = false;       ///< A worker gives extents back while its step uses them.
  bool unmap_before_quiet = false;     ///< A worker unmaps as soon as a word is revoked.
  bool commit_without_reread = false;  ///< A worker emits tokens without asking the gate again.
  bool commit_without_clock = false;   ///< A worker emits tokens without reading the clock.
  bool position_repeated = false;      ///< A worker that continues a text repeats a position.
  bool torn_record_read = false;       ///< A worker adopts a torn record.
  bool weights_not_reopened = false;   ///< A worker that lost its engine lease asks for no other.
  bool reader_not_gated = false;       ///< A reader of a published text ignores that lease's word.
  bool adapter_for_another = false;    ///< A tenant gets the adapter of another one.
  bool adapter_unfilled_kept = false;  ///< Recovery takes an unfilled adapter for a filled one.
  bool adapter_closed_while_read = false;  ///< A worker closes an adapter that a text uses.
  bool adapter_digest_ignored = false;     ///< The broker compares no digest of an adapter.
  bool adapter_bytes_ignored = false;      ///< The broker counts no bytes of adapters.
  bool adapter_not_scrubbed = false;       ///< Memory of an adapter is reported as zero.
  bool adapter_not_gated = false;          ///< A text ignores the word of its adapter's lease.
  bool adapter_version_ignored = false;    ///< A text goes on under another version.
  bool adapter_text_for_any = false;       ///< A published text is read under any adapter.
  bool adapter_text_kept = false;     ///< A published text stays when its adapter's version ends.
  bool journal_over_table = false;    ///< Recovery trusts the journal where the table is newer.
  bool settle_immediately = false;    ///< A worker answers without waiting for its card.
  bool mirror_not_awaited = false;    ///< A launch does not wait for the mirror to be written.
  bool agent_does_not_clear = false;  ///< The agent reports cleared memory without clearing it.
  bool agent_fakes_free_bytes =
      false;                        ///< The agent reports a free figure that always looks right.
  bool erasure_unrecorded = false;  ///< A journal without the records of erasures.
};

class AdapterJudge;
class AgentClient;
class Broker;

/// A text that a tenant asked for.
struct BegunText {
  std::uint64_t id = 0;  ///< 0: none.
  std::string adapter;   ///< Its name; empty: the base model.
};

/// What persists when a broker dies. The next broker takes the table, the worker segments and the
/// watched processes from the dead one itself.
struct PersistentState {
  Broker* broker = nullptr;      ///< The serving broker, or the last one.
  bool store = false;            ///< The service manager keeps descriptors.
  journal::Image journal;        ///< On disk.
  testing::MemoryLedger ledger;  ///< Of the audit records on disk.
  std::set<RegionId> regions;    ///< Sealed weights in the store.
  /// By tenant: the text that its next process continues, if that is resumable.
  std::map<std::string, BegunText> texts;
  bool has_adapters = false;  ///< Tenants use adapters in this schedule.
  AdapterDisk disk;
  bool is_finishing = false;  ///< Nothing fails any more, and every adapter is registered.
  std::uint64_t next_text = 1;
  std::uint64_t next_call_number = 1;
};

struct Dependencies {
  Machine& machine;
  Judge& judge;
  Coverage& coverage;
  PlantedBugs planted_bugs;
  PersistentState& persistent;
  AdapterJudge* adapters = nullptr;
  Card* card = nullptr;  ///< The card whose memory is lent; null: the machine's.
};

/// A worker segment reused by later schedules: making one is slow.
struct WorkerSegment {
  WorkerSegmentReader reader;
  WorkerSegmentWriter writer;
};

class Broker : public Process {
 public:
  /// The first broker of a schedule.
  explicit Broker(Dependencies deps);
  /// A broker that the service manager starts after `before` died.
  Broker(Dependencies deps, Broker& before);
  ~Broker() override;

  using ReplyHandler = std::function<void(const Result<Answer>&)>;

  State state;
  LeaseTable table;
  TableReader reader;  ///< Not a mapping of its own: making one is slow.

  /// Sends a call to this broker.
  template <class Sent>
  void ask(Connection& from, Sent message, ReplyHandler on_reply);
  /// A call has arrived on this connection; the reply goes back on it.
  template <class Sent>
  void call(Connection& from, Sent message, ReplyHandler on_reply);
  /// The same by an operator, who is next to the broker: no message is lost.
  template <class Sent>
  void call(Sent message, ReplyHandler on_reply = {});
  void receive(Event event) { queue_.push_back(std::move(event)); }
  /// `adapter.resolve` of a worker.
  using ResolveHandler = std::function<void(const Result<ResolvedAdapter>&)>;
  void resolve(Connection& from, const TenantId& tenant, const std::string& adapter,
               ResolveHandler on_reply);
  /// The reply to the broker's own call `number` has arrived.
  void answered(std::uint64_t number, Event event);
  void connection_closed(Connection& connection);
  void process_exited(const Process& process);

  bool is_busy() const;
  bool accepts() const override { return !is_busy(); }
  void on_death() override;
  /// Runs up to the next point where the broker may pause.
  void run();
  /// Its other thread scrubs the next memory. False when there is none.
  bool scrub();
  /// The client of the device agent; null where the machine's own memory is lent.
  AgentClient* agent_client() const { return agent_client_.get(); }
  /// When the next timer is due.
  std::optional<TimePoint> next_due() const;
  /// Handles worker segments and clocks, as its wakeup_fd and its timers would make it do.
  void poll_timers();
  void wake() { wakeup_pending_ = true; }
  /// The broker continues after a stop; as in its loop, this event comes first.
  void stalled(Duration gap) { queue_.push_front(BrokerStalled{gap}); }
  /// Work is pending that only time or another process can complete.
  bool has_pending_work() const { return !pending_work().empty(); }
  std::string pending_work() const;

  const WorkerSegment& segment_of(AttachmentId worker) const { return *links_.at(worker).segment; }
  Connection& connect(Process& client, Message on_closed);

  void perform(const effect::CreateExtents&) {}  // the judge counts objects as they are sent
  bool write_together(const std::vector<const journal::Batch*>& batches);
  void perform(const effect::Journal& effect);
  void perform(const effect::PublishGrant& effect);
  void perform(const effect::StoreWords& effect);
  void perform(const effect::SetDeadline& effect);
  void perform(const effect::SetDrainDeadline& effect);
  void perform(const effect::BindWorker& effect);
  void perform(const effect::ResumeWorker& effect);
  void perform(const effect::ForgetWorker& effect);
  void perform(const effect::SendGrant& effect);
  void perform(const effect::SendSettle& effect);
  void perform(const effect::SendUnmap& effect);
  void perform(const effect::SendPing& effect);
  void perform(const effect::SendReclaim& effect);
  void perform(const effect::SendFill& effect);
  void perform(const effect::BeginQuietWatch& effect);
  void perform(const effect::PunchExtents& effect);
  void perform(const effect::ClearExtents& effect);
  void perform(const effect::VerifyExtents& effect);
  void perform(const effect::CreateRegion& effect);
  void perform(const effect::ShareRegion& effect);
  void perform(const effect::SealRegion& effect);
  void perform(const effect::ScrubRegion& effect);
  void perform(const effect::CloseRegion& effect);
  void perform(const effect::KillWorker& effect);
  void perform(const effect::Reply& effect);
  void perform(const effect::ReplyWhenJournaled& effect);
  void perform(const effect::AppendEvent& effect);
  void perform(const effect::SendAsleep& effect);
  void perform(const effect::SendAdmission&) {}  // nothing asks a worker for its health
  void perform(const effect::SendSampling&) {}   // no operator watches steps
  void perform(const effect::SendQuota&) {}      // model workers run one request per lease
  void perform(const effect::Warn&) {}
  void perform(const effect::NotifyDraining& effect);
  void perform(const effect::NotifyAgent&) {}  // the modelled agent asks
  void perform(const effect::NotifyAdapters& effect);
  void perform(const effect::SendAdapterOrder& effect);
  void perform(const effect::NotifyHolder&) {}  // a tenant of the model finds out by its calls

 private:
  struct Link {
    Connection* connection = nullptr;
    WorkerSegment* segment = nullptr;
    bool kept = true;  ///< WorkerSegment, wakeup_fd and pidfd, until the worker is forgotten.
  };
  struct Waiting {
    Connection* connection = nullptr;  ///< Null for an operator.
    ReplyHandler on_reply;
  };
  struct PendingCall {
    const Connection* connection = nullptr;
    TimePoint give_up;
    bool timed_out = false;
    bool is_order = false;  ///< An operator waits for it, so it ends also when the worker is gone.
    std::function<Event(Error)> failed;
  };

  struct StartupState {
    Recovered recovered;
    LeaseTable table;
    std::set<AttachmentId> kept_workers;
  };
  static StartupState recover_state(Dependencies deps, Broker& before);
  Broker(Dependencies deps, Broker& before, StartupState startup);
  void restore_workers(Broker& before, const std::set<AttachmentId>& kept);

  // broker_device.cpp: memory of a card
  void open_device();
  void lend(const effect::SendGrant& effect);
  void send_lent(const effect::SendGrant& effect, Result<std::vector<UniqueFd>> fds);
  void clear(const std::vector<ExtentId>& extents);
  void verify(const effect::VerifyExtents& effect);
  void create_on_device(const effect::CreateRegion& effect);
  void send_grant(const effect::SendGrant& effect);
  void saw_on_device(ExtentState from, ExtentState to);
  Result<Answer> with_descriptor(const Result<Answer>& answer) const;

  // broker_adapters.cpp
  std::vector<Effect> decide_with_planted_bugs(const Event& event);
  std::vector<Effect> decide_with_planted_bugs_of_adapters(const Event& event);

  void live();
  void send_unmap(const effect::SendUnmap& effect);
  void write(const std::vector<journal::Row>& rows);
  void recover();
  /// Takes the descriptors that came with the message before the core decides.
  Result<void> take_memory(const Connection& from, const wire::LeaseRedeliver& message);
  bool is_deciding() const;
  void handle_next();
  void handle(const Event& event);
  void observe_workers();
  void check_words() const;
  void met(const Transition& transition);
  void met_lease(LeaseState from, LeaseState to);
  void saw(const events::LeaseStateChanged& changed);
  void saw(const events::RegionStateChanged& changed);
  void saw(const auto&) {}
  void saw_extent(const events::RegionStateChanged& changed, ExtentState to);
  Kind kind_of(ExtentId extent);
  void saw_region(const events::RegionStateChanged& changed);
  /// The open connection of that worker; null while it is away.
  Connection* connection_to(AttachmentId worker);
  Caller caller_of(const Connection* from, std::string request, std::string_view method);
  std::uint64_t expect_answer(const Connection& connection, std::function<Event(Error)> failed);

  Dependencies deps_;
  QuietObserver quiet_;
  std::deque<Event> queue_;
  std::deque<std::function<void()>> scrubs_;  ///< Tasks of its other thread, in order.
  std::set<ExtentId> too_late_;               ///< A worker that delivers one of these is too late.
  EffectGroup group_;
  bool handling_ = false;
  bool wakeup_pending_ = false;
  bool disk_full_ = false;               ///< The current decision could not be journaled.
  std::vector<journal::Row> unwritten_;  ///< Written together with the next rows.
  std::vector<Effect> to_recover_;       ///< What recovery decided, until it is performed.
  std::map<AttachmentId, Link> links_;
  std::vector<std::unique_ptr<WorkerSegment>>
      segments_;  ///< Segments it made; kept until the schedule is over.
  std::map<AttachmentId, const Process*> watched_;  ///< By pidfd.
  std::map<ConnectionId, Connection*> connections_;
  std::map<CallId, Waiting> waiting_;
  std::map<std::uint64_t, PendingCall> pending_calls_;
  std::map<std::uint64_t, ExtentState> extents_;  ///< As the events reported them.
  std::set<ExtentId> swap_;                       ///< Those of them that are of the swap pool.
  std::map<std::uint64_t, RegionState> regions_;
  std::map<AttachmentId, WorkerState> workers_;
  std::unique_ptr<AgentClient> agent_client_;
  std::unique_ptr<LentMemory> device_;  ///< The product's, on that segment; null: the machine's.
  std::uint64_t next_call_ = 1;
  std::optional<Fiber> fiber_{std::in_place, [this] { live(); }};
};

template <class Sent>
void Broker::ask(Connection& from, Sent message, ReplyHandler on_reply) {
  deps_.machine.send(from, Connection::kServer,
                     [this, &from, message = std::move(message), on_reply = std::move(on_reply)] {
                       call(from, message, on_reply);
                     });
}

template <class Sent>
void Broker::call(Connection& from, Sent message, ReplyHandler on_reply) {
  if constexpr (std::is_same_v<Sent, wire::LeaseRedeliver>) {
    if (const auto taken = take_memory(from, message); !taken) {
      return deps_.machine.send(from, Connection::kClient, [on_reply, why = taken.error()] {
        on_reply(std::unexpected(why));
      });
    }
  }
  std::string request;
  if constexpr (requires { message.request_id; }) request = message.request_id.value;
  Caller caller = caller_of(&from, std::move(request), Sent::kMethod);
  waiting_[caller.call] = {&from, std::move(on_reply)};
  receive(Call<Sent>{std::move(caller), std::move(message)});
}

template <class Sent>
void Broker::call(Sent message, ReplyHandler on_reply) {
  Caller caller = caller_of(nullptr, {}, Sent::kMethod);
  waiting_[caller.call] = {.on_reply = std::move(on_reply)};
  receive(Call<Sent>{std::move(caller), std::move(message)});
}

std::unique_ptr<WorkerSegment> take_spare_segment();

}  // namespace leasehold::simulation
