/// One schedule: hosts, observers and an operator of a cell under faults.
#pragma once

#include <memory>
#include <vector>

#include "tests/simulation/cell/judge.hpp"
#include "tests/simulation/cell/model_host.hpp"
#include "tests/simulation/cell/network.hpp"
#include "tools/cell/decide/silent_hosts.hpp"

namespace leasehold::cell::simulation {

class World {
 public:
  World(std::uint64_t seed, PlantedBug bug, Coverage& coverage);

  /// Runs the schedule to its end. Throws Violation when a promise is broken.
  void run();

 private:
  /// A gateway, as far as it expires hosts.
  struct Observer {
    Machine machine;
    SilentHosts hosts;
    bool is_asking = false;
  };

  static Terms make_terms(PlantedBug bug, std::uint64_t seed);
  Machine make_machine(std::string name, double rate);
  void observe(Observer& observer);
  void expire(Observer& observer, Expiry expiry);
  void fault();
  void heal();
  // The operator.
  void revoke();
  void wait_for(etcd::Revision changed);
  /// Reads ledger, policy and members; then `use`. Tries again until it succeeds.
  void read_tenant(std::function<void(const TenantView&)> use, std::function<void()> again);

  Terms terms_;
  Network network_;
  std::vector<std::unique_ptr<ModelHost>> hosts_;
  std::vector<std::unique_ptr<Observer>> observers_;
  Machine operator_;
  Judge judge_;
  Duration faulty_;  ///< How long faults happen.
};

}  // namespace leasehold::cell::simulation
