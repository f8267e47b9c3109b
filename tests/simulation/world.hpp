/// One schedule: everything around one broker, and who takes the next step, all from one seed.
#pragma once

#include <array>

#include "tests/simulation/model_tenant.hpp"

namespace leasehold::simulation {

/// Whose memory the broker lends; the seed says, unless it is to be one of the two.
enum class Lends : std::uint8_t { Either, Machine, Card };

class World {
 public:
  World(std::uint64_t seed, Plants plants, Coverage& coverage, Lends lends);

  /// A random walk from a random beginning, then rest; the judge looks on throughout.
  void run();

 private:
  static constexpr std::size_t kWorkers = 2;
  static constexpr std::size_t kTenants = 3;

  Fault choose_fault();
  void begin();
  void take_step();
  void recover();
  void take_something_away();
  void live_through_restart();
  void restart_broker();
  bool is_anybody_away() const;
  Broker& broker() const { return *estate_.broker; }
  void settle();
  /// An operator looks at all quarantined memory; false when there is none.
  bool clear_fences();
  void leave_no_fence();
  /// Whatever can happen without time passing happens, for so many rounds at most.
  void calm_down(int most);

  // world_card.cpp
  /// A card works, a driver takes apart, an agent or somebody else's program does its worst.
  bool run_card();
  bool disturb_card();
  bool stop_worker();
  bool calm_card();
  void begin_card();
  void lend_again();

  bool run_thread();
  bool run_broker();
  bool run_tenant();
  bool run_operator();
  bool pass_time();
  bool signal_somebody();
  bool notice_exit();
  bool disturb_somebody();
  bool look_around();
  bool drain_stores();
  void go_on(Process& process);
  LeaseId any_lease();

  Worker& spawn_worker(std::size_t place);
  Tenant& spawn_tenant(std::size_t place);

  Machine machine_;
  std::optional<Card> card_;
  std::uint32_t card_pace_ = 1;  ///< A slow card works once in so many chances.
  Judge judge_;
  Estate estate_;
  Surroundings around_;
  std::array<Worker*, kWorkers> workers_{};
  std::array<Tenant*, kTenants> tenants_{};
  std::deque<const Process*> exits_;  ///< Whose pidfd the broker has not looked at.
};

}  // namespace leasehold::simulation
