/// One schedule: everything deps one broker, and who takes the next step, all from one seed.
#pragma once

#include <array>

#include "tests/simulation/model_tenant.hpp"

namespace leasehold::simulation {

/// Whose memory the broker lends; the seed says, unless it is to be one of the two.
enum class MemoryKind : std::uint8_t { Either, Machine, Card };

class World {
 public:
  World(std::uint64_t seed, PlantedBugs planted_bugs, Coverage& coverage, MemoryKind lends);

  /// A random walk from a random startup, then rest; the judge looks on throughout.
  void run();

 private:
  static constexpr std::size_t kWorkers = 2;
  static constexpr std::size_t kTenants = 3;

  Fault choose_fault();
  void begin();
  void take_step();
  void recover();
  void revoke_some_leases();
  void restart_under_load();
  void restart_broker();
  bool is_any_worker_reconnecting() const;
  Broker& broker() const { return *persistent_.broker; }
  void settle();
  /// An operator looks at all quarantined memory; false when there is none.
  bool release_quarantined();
  void release_all_quarantined();
  /// Whatever can happen without time passing happens, for so many rounds at most.
  void run_until_idle(int most);

  // world_card.cpp
  /// A card works, a driver takes apart, an agent or somebody else's program does its worst.
  bool run_card();
  bool disturb_card();
  bool stop_worker();
  bool run_card_until_idle();
  void begin_card();
  void lend_again();

  bool run_thread();
  bool run_broker();
  bool run_tenant();
  bool run_operator();
  bool advance_clock();
  bool deliver_signals();
  bool notice_exit();
  bool disturb_random_process();
  bool poll_timers();
  bool drain_stores();
  void resume(Process& process);
  LeaseId any_lease();

  Worker& spawn_worker(std::size_t index);
  Tenant& spawn_tenant(std::size_t index);

  Machine machine_;
  std::optional<Card> card_;
  std::uint32_t card_pace_ = 1;  ///< A slow card works once in so many chances.
  Judge judge_;
  PersistentState persistent_;
  Dependencies deps_;
  std::array<Worker*, kWorkers> workers_{};
  std::array<Tenant*, kTenants> tenants_{};
  std::deque<const Process*> exits_;  ///< Whose pidfd the broker has not looked at.
};

}  // namespace leasehold::simulation
