/// One schedule: hosts that fail and recover, a network that cuts, delays and reorders, and one
/// request that the gateway's decisions take through them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/simulation/gateway/host.hpp"
#include "tests/simulation/gateway/judge.hpp"

namespace leasehold::gateway::simulation {

/// How often schedules reached what they are for.
struct Coverage {
  std::uint64_t finished = 0;
  std::uint64_t failed = 0;
  std::map<MoveCause, std::uint64_t> opened;
  std::uint64_t asked_again = 0;  ///< Successors that were too far behind.
  std::uint64_t left_list = 0;    ///< Successors of hosts that left the list.
  std::uint64_t gone_bytes = 0;   ///< Bytes that arrived from a host after it had left its cell.
};

class World {
 public:
  World(std::uint64_t seed, Coverage& coverage);

  /// Runs the schedule to its end; ends the program when a promise is broken.
  void run();

 private:
  struct Connection {
    HostId host;
    std::optional<Incarnation> incarnation;  ///< Of the host, when it was opened.
    std::optional<HostStream> stream;
    TimePoint arrives;       ///< When the newest bytes arrive: later ones do not overtake them.
    bool is_cut = false;     ///< The host makes nothing more.
    bool is_lost = false;    ///< Nothing more arrives.
    bool is_paused = false;  ///< The host is frozen; production continues when it thaws.
  };

  // Set-up.
  ContinuationTerms make_terms();
  Text make_text();
  void make_hosts();
  void plan_faults();

  // The network and the hosts.
  void report(HostId host);
  void do_action(const OpenHost& open);
  void answer(AttemptId attempt, const EmittedTokens& emitted);
  void produce(AttemptId attempt);
  void deliver(AttemptId attempt, const Piece& piece);
  void arrive(AttemptId attempt, std::string bytes, std::optional<PieceKind> completes);
  void lose(AttemptId attempt, std::string_view why);
  void set_power(HostId host, Power power);
  void cut_connections(HostId host);
  void drain(HostId host, bool ends_texts);
  void set_listed(HostId host, bool is_listed);
  void leave_cell(HostId host);
  void use_members();
  bool is_of_gone_host(const TextEvent& event) const;
  void heal_all();

  // The gateway.
  void on_event(std::function<void()> event);
  void read_inbox();
  void on(const TextEvent& event);
  void arm_timer();
  void fire_timer();

  void at(Duration after, std::function<void()> action);
  Duration between(std::int64_t least_ms, std::int64_t most_ms);
  bool one_in(std::uint64_t count) { return random_.below(count) == 0; }
  void trace_step(const TextEvent& event, const TextActions& actions) const;
  void trace(std::string_view line) const;

  SeededRandom random_;
  Coverage& coverage_;
  TimePoint now_{1'000'000'000};
  TimePoint stopped_until_;  ///< Of the gateway.
  bool is_gentle_;           ///< One host works all the time.
  bool is_cell_;             ///< The hosts are those of a cell.
  Text text_;
  ContinuationTerms terms_;
  std::vector<Host> hosts_;
  std::vector<Incarnation> incarnations_;  ///< Of a cell, by host; zero: not a member.
  std::uint64_t revision_ = 0;             ///< Of the newest incarnation.
  std::optional<HostTable> table_;
  Judge judge_;
  TextContinuation continuation_;
  std::deque<std::function<void()>> inbox_;  ///< What the gateway has not read.
  std::map<AttemptId, Connection> connections_;
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> queue_;
  std::uint64_t events_ = 0;
};

}  // namespace leasehold::gateway::simulation
