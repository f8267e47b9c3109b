/// Who watches from outside: sees every word, unit, mapping and answer, believes nobody's books.
///
/// A broken promise ends the program with the seed and the step; `expect_violation` turns that into
/// success, for planted ones. Threads: one judge per machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "broker/decide/effect.hpp"
#include "broker/recovery/recovery.hpp"
#include "ipc/segment/launch_gate.hpp"
#include "ipc/table/lease_table.hpp"
#include "tests/simulation/card.hpp"
#include "tests/simulation/machine.hpp"

namespace leasehold::simulation {

class Coverage;
class Worker;
struct Launch;
struct LaunchRow;

/// Launches that a worker has in its card's stream at once.
inline constexpr std::uint32_t kLaunchesInFlight = 3;

/// Names the schedule under way on this thread, for whoever must report a broken promise.
struct Running {
  std::uint64_t seed = 0;
  std::uint64_t schedule = 0;  ///< How many this thread has begun.
  const Machine* machine = nullptr;
};
extern thread_local Running running_schedule;
extern bool expect_violation;
/// What beside the seed makes a schedule what it is: options, each with a space before it.
extern std::string running_options;

/// With SEED given: every event of the schedule, a line each.
extern bool tracing;
void trace(const std::string& line);

[[noreturn]] void violated(const std::string& what);

/// One unit in the making or at work, per gate thread.
struct UnitState {
  std::uint64_t called_at = 0;  ///< Step in which the thread came to the gate.
  bool open = false;            ///< The gate let it in and it has not ended.
  Touches touches{};
  std::vector<LeaseId> leases;
};

/// A request as the outside counts it: one typed end, no token afterwards.
struct Request {
  std::uint64_t id = 0;
  LeaseId lease;
  const Process* holder = nullptr;
  const Process* worker = nullptr;
  const Connection* stream = nullptr;
  bool accepted = false;
  int ends = 0;
};

class Judge {
 public:
  Judge(const Machine& machine, std::uint64_t capacity_extents)
      : machine_(&machine), capacity_extents_(capacity_extents) {}
  /// The memory that is lent is this card's.
  void watch(Card& card, Coverage& coverage) {
    card_ = &card;
    coverage_ = &coverage;
  }

  // Words, as the broker stores them.
  void granted(LeaseId lease, AttachmentId worker, bool engine);
  void word_stored(LeaseId lease, LeaseState to);
  void grant_sent(LeaseId lease);
  void fenced(LeaseId lease, std::string_view proof);

  // Workers.
  void attached(AttachmentId attachment, const Worker& worker);
  void unit_opened(UnitState& unit, Touches touches, std::vector<LeaseId> leases);
  void touched(const Worker& worker, const UnitState& unit, LeaseId lease, ExtentId extent);
  void mapped(const Worker& worker, ExtentId extent);
  void unmapped(const Worker& worker, ExtentId extent);
  void died(const Worker& worker);
  /// Its local stop was told that the lease is past its deadline; a new request begins anew.
  void notified_expired(LeaseId lease);
  void accepted(LeaseId lease);
  /// A worker that writes after its fence: its memory must never be free again.
  void taint(ExtentId extent);

  // A broker and the next one.
  void broker_died();
  /// It has put the words right that it found, or made a new table; nobody was heard yet.
  struct BrokerStartup {
    const State& state;
    const std::vector<Recovered::Word>& words;
    const LeaseTable& table;
  };
  void broker_started(const BrokerStartup& started, bool table_kept);
  /// Its descriptor came in a message: the object is open again, whoever maps it by now.
  void redelivered(ExtentId extent);

  // Memory objects, as the broker makes, punches and closes them.
  void object_made(ExtentId extent, LeaseId lease);
  void punched(ExtentId extent);
  /// What the broker reads; closes the object when that is zero, or it wants to anyway.
  std::uint64_t verified(ExtentId extent, bool close_anyway);
  void freed(ExtentId extent);

  // Memory of a card, and what works there.
  struct Lent {
    ExtentId extent;
    LeaseId lease;
    const Worker* worker = nullptr;
    std::size_t memory = 0;  ///< Which, as its descriptor says.
  };
  void lent(const Lent& lent);
  void quarantined(ExtentId extent);
  void released_by_operator(ExtentId extent);
  /// A kernel that was not stopped.
  void kernel_began(const Launch& launch) const;
  void kernel_touches(const Worker& worker, Launch& launch, const LaunchRow& row);

  // Requests.
  Request& submitted(LeaseId lease, const Process& holder, const Process& worker,
                     const Connection& stream);
  /// `commit_begun`: the step in which the commit came to the gate, if it did.
  void token_emitted(const Request& request, std::uint64_t commit_begun);
  void ended(Request& request);

  /// Everything has come to rest: nobody who lives was left without an answer.
  void at_rest() const;

 private:
  struct Lease {
    LeaseId id;
    AttachmentId worker;
    bool engine = false;
    bool sent = false;
    LeaseState state = LeaseState::Live;
    bool orphaned = false;         ///< Its worker looks at a table that no broker writes any more.
    std::uint64_t flipped_at = 0;  ///< Step in which word *and* counter were down.
    std::uint64_t expired_at = 0;  ///< Step in which its worker was told of its deadline.
    std::uint32_t launches_after_flip = 0;  ///< That still worked for it, on a card.
  };
  struct Object {
    LeaseId lease;
    bool open = true;  ///< The broker still has it.
    bool tainted = false;
    bool allocated = false;
    std::vector<const Worker*> mappers;
    // Of a card.
    std::optional<std::size_t> memory;
    bool returned = false;          ///< By its worker, so that it may be lent again.
    bool falsely_unmapped = false;  ///< Its worker said that it had unmapped.
    bool released_by_operator = false;
  };
  Lease& at(LeaseId lease);
  struct Slot {
    std::uint32_t number;
    bool table_kept;
  };
  void check_word(Lease& lease, Slot slot, const BrokerStartup& started);
  void enter(const Recovered::Word& word, const State& state);
  void check_no_unit_in(const Lease& lease) const;
  void check_capacity() const;
  void check_card_capacity() const;
  void check_lent_before(const Object& object, const Lent& lent) const;
  void import(const Worker& worker, Object& object);
  void release_import(const Worker& worker, Object& object);
  void died_on_card(const Worker& worker);
  void freed_on_card(ExtentId extent, const Object& object);
  void count_after_flip(Launch& launch, Lease& lease) const;

  const Machine* machine_;
  std::uint64_t capacity_extents_;
  Card* card_ = nullptr;
  /// The figure says how much was kept, not which: what was called free and is kept, and what was
  /// quarantined in its place.
  std::uint64_t kept_and_free_ = 0;
  std::uint64_t quarantined_instead_ = 0;
  Coverage* coverage_ = nullptr;
  std::map<std::uint32_t, Lease> slots_;
  std::map<AttachmentId, const Worker*> workers_;
  std::map<ExtentId, Object> objects_;
  std::deque<Request> requests_;
};

}  // namespace leasehold::simulation
