/// Events in the order of true time, and calls to etcd over a network that delays, loses and
/// repeats them. Machines can be cut off and stopped.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "common/random.hpp"
#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tests/simulation/cell/planted_bug.hpp"

namespace leasehold::cell::simulation {

/// How often schedules reached what they are for.
enum class Counted : std::uint8_t {
  Joins,
  Renewals,
  OwnBeatsFound,
  Fences,
  Expiries,
  LostCalls,
  LostReplies,
  LateCalls,
  RepeatedCalls,
  WatchGaps,
  CompactedWatches,
  NamesInUse,
  Admissions,
  VoidParts,
  Replacements,
  Revocations,
  Mails,
  PausedWants,
  BrokerRestarts,
  Commits,
  LostLeases,
  Moves,
  Texts,
  Settled,
};
inline constexpr int kCountedCount = static_cast<int>(Counted::Settled) + 1;
std::string_view name(Counted counted);
using Coverage = std::map<Counted, std::uint64_t>;

/// A machine: its clock, its link and whether it runs.
struct Machine {
  std::string name;
  std::int64_t offset_ns = 0;
  double rate = 1.0;  ///< Of its clock, against true time.
  bool is_cut = false;
  TimePoint stopped_until;  ///< True time.
};

class Network {
 public:
  Network(std::uint64_t seed, PlantedBug bug, Coverage& coverage)
      : random_(seed), bug_(bug), coverage_(coverage) {}

  using Action = std::function<void()>;
  using OnReply = std::function<void(const etcd::TransactionReply&)>;

  TimePoint now() const { return now_; }
  TimePoint clock_of(const Machine& machine) const {
    return {machine.offset_ns +
            static_cast<std::int64_t>(static_cast<double>(now_.boottime_ns) * machine.rate)};
  }
  /// Runs `action` after this true time; not while `machine` is stopped.
  void at(Duration after, Machine* machine, Action action);
  /// Sends a transaction. Exactly one of `done` and `failed` runs, `failed` after a second.
  void call(Machine& from, etcd::Transaction transaction, OnReply done, Action failed);
  /// Runs the next event. False at the end of the schedule.
  bool step(TimePoint end);
  /// Called after each transaction that was executed.
  void on_executed(Action action) { on_executed_ = std::move(action); }

  ModelledEtcd& etcd() { return etcd_; }
  SeededRandom& random() { return random_; }
  bool one_in(std::uint64_t count) { return random_.below(count) == 0; }
  Duration between(std::int64_t least_ms, std::int64_t most_ms);
  bool has(PlantedBug bug) const { return bug_ == bug; }
  void count(Counted counted, std::uint64_t times = 1) { coverage_[counted] += times; }
  void trace(const std::string& line) const;
  bool is_calm = false;  ///< The network loses nothing any more.

 private:
  struct Event {
    Machine* machine;
    Action action;
  };
  struct Call;
  void arrive(const std::shared_ptr<Call>& call);

  SeededRandom random_;
  PlantedBug bug_;
  Coverage& coverage_;
  TimePoint now_{1'000'000'000};
  ModelledEtcd etcd_;
  Action on_executed_;
  /// When an event runs, when it was due, and its number. So what waits for a stopped machine runs
  /// in the order in which it was due.
  using Turn = std::tuple<TimePoint, TimePoint, std::uint64_t>;
  std::map<Turn, Event> queue_;
  std::uint64_t events_ = 0;
};

/// The schedule that this thread runs.
struct RunningSchedule {
  std::uint64_t seed = 0;
  bool is_traced = false;
};
inline thread_local RunningSchedule running_schedule;

/// A broken promise: ends the schedule.
struct Violation {
  std::string what;
};

}  // namespace leasehold::cell::simulation
