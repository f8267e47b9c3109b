/// One schedule: one broker, its workers and tenants, and the order of their steps, all from one
/// seed.
#pragma once

#include <array>
#include <string_view>

#include "tests/simulation/adapters/adapter_judge.hpp"
#include "tests/simulation/adapters/adapter_operator.hpp"
#include "tests/simulation/model_cell_agent.hpp"
#include "tests/simulation/model_tenant.hpp"

namespace leasehold::simulation {

/// Whose memory the broker lends; Either: the seed decides.
enum class MemoryKind : std::uint8_t { Either, Machine, Card };

class World {
 public:
  World(std::uint64_t seed, PlantedBugs planted_bugs, Coverage& coverage, MemoryKind memory);

  /// A random walk from a random start, then rest. The judge checks throughout.
  void run();

 private:
  static constexpr std::size_t kWorkers = 2;
  static constexpr std::size_t kTenants = 3;
  static constexpr std::string_view kTenantNames[] = {"a", "b", "c"};
  static constexpr std::size_t kGuaranteed = 0;
  static constexpr std::size_t kOfCell = 1;  ///< In some schedules.
  static constexpr std::size_t kScavenger = 2;

  Fault choose_fault();
  void begin();
  void take_step();
  void recover();
  void move_memory();
  void kill_worker(std::size_t index);
  void revoke_some_leases();
  void restart_under_load();
  void restart_broker();
  bool is_any_worker_reconnecting() const;
  Broker& broker() const { return *persistent_.broker; }
  void settle();
  /// Runs everything that needs no time to pass, at most `most` rounds.
  void run_until_idle(int most);

  // world_card.cpp
  /// The card works, its driver tears down memory, or an agent or another program disturbs it.
  bool run_card();
  bool disturb_card();
  bool stop_worker();
  bool run_card_until_idle();
  void begin_card();
  void lend_again();

  bool run_thread();
  bool run_broker();
  bool run_tenant();
  bool advance_clock();
  bool deliver_signals();
  bool notice_exit();
  bool disturb_random_process();
  bool poll_timers();
  bool drain_stores();
  void resume(Process& process);

  // world_operator.cpp
  bool run_operator();
  void change_policy(std::size_t tenant);
  void replace_worker(std::size_t old);
  LeaseId any_lease();
  /// Releases all quarantined memory; false when there is none.
  bool release_quarantined();
  void release_all_quarantined();
  void end_untrusted_workers();

  // world_texts.cpp
  void restart_dead_processes();
  void admit_all();
  /// After the last fault each tenant gets its whole text, however often it must start again. Not
  /// on a card, whose memory stays with a worker until that exits.
  void finish_texts();

  Worker& spawn_worker(std::size_t index);
  Tenant& spawn_tenant(std::size_t index);

  Machine machine_;
  std::optional<Card> card_;
  std::uint32_t card_pace_ = 1;  ///< A slow card works once in this many chances.
  Judge judge_;
  PersistentState persistent_;
  AdapterJudge adapter_judge_;
  Dependencies deps_;
  std::array<Worker*, kWorkers> workers_{};
  std::array<Tenant*, kTenants> tenants_{};
  AdapterOperator adapter_operator_{deps_};
  CellAgent cell_agent_{deps_, std::string(kTenantNames[kOfCell])};
  std::deque<const Process*> exits_;  ///< Exited processes whose pidfd the broker has not read yet.
};

}  // namespace leasehold::simulation
