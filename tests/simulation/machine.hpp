/// The simulated machine: processes that run, are stopped or are dead; connections that deliver in
/// order, late, or not at all; a clock and random choices. Nothing here depends on leases.
///
/// Lifetime: everything lives until the schedule is over, dead processes too, so a message may
/// refer to its receiver by pointer. Threads: one machine per thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "broker/books/ids.hpp"
#include "common/clock.hpp"
#include "common/fault_point.hpp"
#include "common/random.hpp"

namespace leasehold::simulation {

/// Runs at its receiver on arrival.
using Message = std::function<void()>;

enum class Life : std::uint8_t { Running, Stopped, Dead };
enum class Role : std::uint8_t { Broker, Worker, Tenant, Agent };

class Process {
 public:
  explicit Process(Role role) : role_(role) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process() = default;

  Role role() const { return role_; }
  bool is_running() const { return life == Life::Running; }
  bool is_dead() const { return life == Life::Dead; }
  /// True when it can take a message now.
  virtual bool accepts() const { return true; }
  /// The kernel ends its threads and mappings; the machine closes its connections.
  virtual void on_death() = 0;

  std::int64_t pid = 0;
  Life life = Life::Running;
  TimePoint stopped_at;
  bool kill_pending = false;       ///< SIGKILL is on its way.
  std::deque<Message> unfinished;  ///< Runs first when the process is continued after a stop.

 private:
  Role role_;
};

struct Connection {
  static constexpr int kClient = 0;
  static constexpr int kServer = 1;

  struct End {
    Process* process = nullptr;
    bool open = true;
    std::deque<Message> inbox;
    Message on_closed;  ///< Arrives after everything that the other side sent.
  };
  ConnectionId id;
  End ends[2];

  bool is_open() const { return ends[0].open && ends[1].open; }
};

/// What an armed fault does to the process that reaches it.
enum class FaultAction : std::uint8_t { Kill, Stop };

struct Fault {
  FaultSite site{};
  FaultAction action{};
  int arrivals_left = 1;
  Process* triggered = nullptr;
};

class Machine {
 public:
  explicit Machine(std::uint64_t seed) : random_(seed) {}

  ManualClock clock;
  std::optional<Fault> fault;
  std::uint64_t step = 0;

  std::uint32_t pick(std::uint64_t bound) {
    return static_cast<std::uint32_t>(random_.below(bound));
  }
  bool one_in(std::uint64_t n) { return pick(n) == 0; }

  template <class P, class... Args>
  P& spawn(Args&&... args) {
    auto process = std::make_unique<P>(std::forward<Args>(args)...);
    P& spawned = *process;
    spawned.pid = kFirstPid + static_cast<std::int64_t>(processes_.size());
    processes_.push_back(std::move(process));
    return spawned;
  }
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
  /// Precondition: it was spawned here.
  const Process& process(std::int64_t pid) const {
    return *processes_.at(static_cast<std::size_t>(pid - kFirstPid));
  }

  Connection& connect(Process& client, Process& server);
  /// Lost when either end is already closed.
  void send(Connection& connection, int to, Message message);
  /// One side closes: the other reads what was sent before, then the end.
  void close(Connection& connection, int side);
  /// Delivers one message; false when no process can take one.
  bool deliver();

  /// A process reaches a fault point. True: the fault triggered, and the process goes on only if it
  /// was stopped and is continued.
  bool reach(FaultSite site, Process& process);
  /// As `reach`, for code that has no thread of its own: `rest` runs unless the process is killed
  /// there; after a stop, when the process is continued.
  void reach_then(FaultSite site, Process& process, Message rest);
  void kill(Process& process);
  /// SIGKILL arrives at that process later.
  void send_kill(std::int64_t pid) {
    processes_.at(static_cast<std::size_t>(pid - kFirstPid))->kill_pending = true;
  }

 private:
  static constexpr std::int64_t kFirstPid = 100;

  void close_dead_end(Connection& connection, int side);

  SeededRandom random_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::uint64_t next_connection_ = 10;
};

}  // namespace leasehold::simulation
