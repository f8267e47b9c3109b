/// The judge watches from outside: it sees every word, unit, mapping and reply, and trusts the
/// books of no process.
///
/// A broken promise ends the program with the seed and the step; `expect_violation` makes that a
/// success, for planted bugs. Threads: one judge per machine.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/decide/effect.hpp"
#include "broker/recovery/recovery.hpp"
#include "ipc/segment/launch_gate.hpp"
#include "ipc/table/lease_table.hpp"
#include "tests/simulation/card.hpp"
#include "tests/simulation/machine.hpp"
#include "tests/simulation/text.hpp"

namespace leasehold::simulation {

class Coverage;
class Worker;
struct Launch;
struct LaunchRow;

/// Most launches that a worker has in its card's stream.
inline constexpr std::uint32_t kLaunchesInFlight = 3;

/// The schedule running on this thread, for reports of a broken promise.
struct Running {
  std::uint64_t seed = 0;
  std::uint64_t schedule = 0;  ///< Number of schedules this thread has begun.
  const Machine* machine = nullptr;
};
extern thread_local Running running_schedule;
extern bool expect_violation;
/// Options that determine a schedule besides the seed, each with a space before it.
extern std::string running_options;

/// Set by SEED: prints every event of the schedule, one per line.
extern bool tracing;
void trace(const std::string& line);

[[noreturn]] void violated(const std::string& what);

/// The current unit of one gate thread.
struct UnitState {
  std::uint64_t called_at = 0;  ///< Step in which the thread reached the gate.
  bool open = false;            ///< The gate admitted it and it has not ended.
  Touches touches{};
  std::vector<LeaseId> leases;
};

/// A request as its holder counts it: one typed end, no token afterwards.
struct Request {
  std::uint64_t id = 0;
  LeaseId lease;  ///< Under which it runs.
  const Process* holder = nullptr;
  const Process* worker = nullptr;
  const Connection* stream = nullptr;
  std::string tenant;
  std::string adapter;   ///< Its name; empty: the base model.
  Text text;             ///< What its reader had when it sent the request.
  bool resumes = false;  ///< Only the reader is another one; an unknown text is refused.
  bool accepted = false;
  int ends = 0;
};

class Judge {
 public:
  /// The machine and the coverage outlive it.
  Judge(const Machine& machine, Coverage& coverage, std::uint64_t kv_extents,
        std::uint64_t swap_extents)
      : machine_(&machine),
        capacity_extents_(kv_extents),
        swap_extents_(swap_extents),
        coverage_(&coverage) {}
  /// The lent memory is this card's.
  void watch(Card& card) { card_ = &card; }

  // Words, as the broker stores them.
  void granted(LeaseId lease, AttachmentId worker, bool engine);
  void word_stored(LeaseId lease, LeaseState to);
  void grant_sent(LeaseId lease) { at(lease).sent = true; }
  void fenced(LeaseId lease, std::string_view proof);

  // Workers.
  void attached(AttachmentId attachment, const Worker& worker) { workers_[attachment] = &worker; }
  void unit_opened(UnitState& unit, Touches touches, std::vector<LeaseId> leases);
  void touched(const Worker& worker, const UnitState& unit, LeaseId lease, ExtentId extent);
  void mapped(const Worker& worker, ExtentId extent);
  void unmapped(const Worker& worker, ExtentId extent);
  void died(const Worker& worker);
  /// The worker learned that the lease is past its deadline; a new request resets this.
  void notified_expired(LeaseId lease);
  void accepted(LeaseId lease) { at(lease).expired_at = 0; }
  /// A worker writes to the extent after its fence: the memory must never be free again.
  void taint(ExtentId extent);

  // The end of a broker and the start of the next.
  void broker_died();
  /// The broker has repaired the words it found, or made a new table, and has handled no message
  /// yet.
  struct BrokerStartup {
    const State& state;
    const std::vector<Recovered::Word>& words;
    const LeaseTable& table;
  };
  void broker_started(const BrokerStartup& started, bool table_kept);
  /// Its descriptor came in a message: the object is open again, whether or not a worker maps it.
  void redelivered(ExtentId extent) { objects_.at(extent).open = true; }

  // Memory objects, as the broker makes, punches and closes them.
  /// Memory of another lease is adopted only by a lease of the same tenant, after its fence, while
  /// no worker maps it.
  void object_made(ExtentId extent, const wire::LeaseGrant& grant);
  void punched(ExtentId extent);
  /// What the broker reads. Closes the object when that is zero or `close_anyway` is set.
  std::uint64_t verified(ExtentId extent, bool close_anyway);
  void freed(ExtentId extent);

  // Memory of a card, and the kernels that use it.
  struct Lent {
    ExtentId extent;
    LeaseId lease;
    const Worker* worker = nullptr;
    std::size_t memory = 0;  ///< Which memory, identified by its descriptor.
  };
  void lent(const Lent& lent);
  void quarantined(ExtentId extent);
  void released_by_operator(ExtentId extent);
  /// A kernel began that was not stopped.
  void kernel_began(const Launch& launch) const;
  void kernel_touches(const Worker& worker, Launch& launch, const LaunchRow& row);

  // Requests.
  Request& submitted(LeaseId lease, const Process& holder, const Process& worker,
                     const Connection& stream);
  struct CommitTime {
    std::uint64_t begun = 0;  ///< The step in which the commit reached the gate, if it did.
    TimePoint decided_at;     ///< When the worker read the clock for the commit.
  };
  void token_emitted(const Request& request, const CommitTime& commit);
  void ended(Request& request);

  // The ceiling of a cell (judge_cell.cpp). Until a broker has applied one, earlier ones may count.
  void belongs_to_cell(std::string tenant) { cell_tenant_ = std::move(tenant); }
  bool is_of_cell(std::string_view tenant) const {
    return !cell_tenant_.empty() && tenant == cell_tenant_;
  }
  std::size_t ceiling_sent(TimePoint ceiling);
  /// `number` is what ceiling_sent returned.
  void ceiling_applied(std::size_t number);

  // Texts and their records in KV memory (judge_texts.cpp).
  void begins_record(ExtentId extent, const Text& text);
  void wrote_record(ExtentId extent, const Text& text);
  const TextRecord& record_in(ExtentId extent) const { return objects_.at(extent).record; }
  /// A worker begins to generate the text for the request, from `from` on.
  void text_runs(const Request& request, const Worker& worker, const Text& from, bool is_adopted);
  void text_is_resumed(std::uint64_t text);
  void text_fails_over(std::uint64_t text);
  /// A token arrives at a process that has had `before` of its text.
  void token_arrived(const Text& before, std::uint32_t position, std::uint32_t token);
  /// The reader gets the end of the text.
  void text_completed(const Text& text);
  /// Its reader gives up: its adapter, or the version that began it, is gone.
  void text_abandoned(std::uint64_t text) {
    texts_.erase(text);
    left_texts_.insert(text);
  }
  /// Nothing fails any more, and every reader has had time to get its text.
  void texts_are_whole() const;
  void tenant_died(std::uint64_t text);

  /// The machine is idle: every running process has its replies.
  void at_rest() const;

 private:
  struct Lease {
    LeaseId id;
    AttachmentId worker;
    bool engine = false;
    bool sent = false;
    LeaseState state = LeaseState::Live;
    bool orphaned = false;             ///< Its worker reads a table that no broker writes any more.
    TimePoint abandoned_ceiling{};     ///< The highest one that table may have; set if `orphaned`.
    std::uint64_t word_stored_at = 0;  ///< Step by which word *and* counter were stored.
    std::uint64_t expired_at = 0;      ///< Step in which its worker learned of its deadline.
    std::uint32_t launches_after_flip = 0;  ///< Launches that still worked for it, on a card.
  };
  struct Object {
    LeaseId lease;
    TenantId tenant;
    MemoryPool pool = MemoryPool::Kv;
    bool open = true;  ///< The broker still has it.
    bool tainted = false;
    bool allocated = false;
    std::vector<const Worker*> mappers;
    // Of a card.
    std::optional<std::size_t> memory;
    bool returned = false;          ///< By its worker, so it may be lent again.
    bool falsely_unmapped = false;  ///< Its worker reported an unmap that it had not done.
    bool released_by_operator = false;
    TextRecord record;  ///< Empty in memory that is zero.
  };
  /// A text that a worker has begun, until its reader has all of it.
  struct WatchedText {
    const Worker* worker = nullptr;
    const Worker* adopter = nullptr;  ///< Memory with its record was granted on this worker.
    bool is_handed_over = false;      ///< The memory's worker ran at the last adoption.
    bool is_resumed = false;          ///< Since its last token, as the next one.
    bool fails_over = false;
    std::uint32_t deaths = 0;  ///< Since its last token, a bit for each TextEvent.
    bool has_seen_deaths = false;
  };
  void note_adoption(const Object& object, const Lease& by);
  void note_worker_death(const Worker& worker);
  void note_broker_death();
  Lease& at(LeaseId lease);
  struct Slot {
    std::uint32_t number;
    bool table_kept;
  };
  void check_word(Lease& lease, Slot slot, const BrokerStartup& started);
  void enter(const Recovered::Word& word, const State& state);
  void check_no_unit_in(const Lease& lease) const;
  TimePoint highest_ceiling() const;
  TimePoint highest_replaced_since(TimePoint begin) const;
  void orphan(Lease& lease);
  void check_ceiling(const Request& request, TimePoint decided_at);
  void check_capacity(MemoryPool pool) const;
  void adopted(Object& object, const wire::LeaseGrant& grant);
  bool is_on_card(const Object& object) const {
    return card_ != nullptr && object.pool == MemoryPool::Kv;
  }
  void check_card_capacity() const;
  void check_lent_before(const Object& object, const Lent& lent) const;
  void import(const Worker& worker, Object& object);
  void release_import(const Worker& worker, Object& object);
  void died_on_card(const Worker& worker);
  void freed_on_card(ExtentId extent, const Object& object);
  void count_after_flip(Launch& launch, Lease& lease) const;

  const Machine* machine_;
  std::uint64_t capacity_extents_;
  std::uint64_t swap_extents_;
  Coverage* coverage_;
  Card* card_ = nullptr;
  /// The driver's figure says how much memory is kept, not which: counts memory called free that is
  /// kept, and memory quarantined in its place.
  std::uint64_t kept_and_free_ = 0;
  std::uint64_t quarantined_instead_ = 0;
  std::map<std::uint32_t, Lease> slots_;
  std::map<AttachmentId, const Worker*> workers_;
  std::map<ExtentId, Object> objects_;
  std::deque<Request> requests_;
  std::map<std::uint64_t, WatchedText> texts_;
  std::set<std::uint64_t> left_texts_;  // that their readers have whole, or gave up
  struct Ceiling {
    TimePoint at;
    TimePoint replaced_at;  ///< When a broker was known to have applied a later one.
  };
  std::string cell_tenant_;        ///< Empty: the machine is in no cell.
  std::vector<Ceiling> ceilings_;  ///< In the order in which they were sent.
  TimePoint ceiling_at_death_;     ///< The highest one in force when the last broker died.
  std::size_t applied_ = 0;        ///< The newest one that a broker has applied.
};

}  // namespace leasehold::simulation
