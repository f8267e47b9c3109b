/// Performs a random script on a system.
#pragma once

#include "tests/checks/runner/script.hpp"
#include "tests/checks/runner/system.hpp"

namespace leasehold::runner {

/// The next action runs after this time even without new tokens.
inline constexpr Duration kIdleTimeout = std::chrono::milliseconds(500);

/// Revokes a live lease of this scope, the `which % n`-th of n. An empty `worker` allows the leases
/// of every worker. False if there is none, or if the broker does not answer and may end. Errors:
/// those of another broker that does not answer.
Result<bool> revoke_lease(System& system, wire::LeaseScope scope, std::uint64_t which,
                          const std::string& worker = {});

/// Lifetime: the system and the script outlive the object. Threads: one.
class ScriptRunner {
 public:
  ScriptRunner(System& system, const Script& script, std::uint64_t seed)
      : system_(system), script_(script), random_(seed) {}
  virtual ~ScriptRunner() = default;

  /// Draws an action, waits for its number of tokens, and performs and counts it. False if it had
  /// no target. Errors: those of System and of `act`.
  Result<bool> run_next();
  std::uint64_t random() { return random_(); }

 protected:
  /// Performs an action that needs no more than the system. False if it has no target now.
  virtual Result<bool> act(const ScriptAction& action);

 private:
  static bool kill_or_stop(const ScriptAction& action, ProcessSlot* process);
  ProcessSlot* tenant_process(const ScriptAction& action);
  bool kill_broker_and_worker(const ScriptAction& action);
  bool replace_worker(const ScriptAction& action);
  bool sleep_worker(const ScriptAction& action);
  Result<bool> drain(const ScriptAction& action);

  System& system_;
  const Script& script_;
  SeededRandom random_;
};

}  // namespace leasehold::runner
