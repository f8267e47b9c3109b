/// One schedule: hosts, observers and an operator of a cell under faults.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/simulation/cell/judge.hpp"
#include "tests/simulation/cell/model_host.hpp"
#include "tests/simulation/cell/network.hpp"
#include "tests/simulation/cell/texts.hpp"
#include "tools/cell/decide/change_progress.hpp"
#include "tools/cell/decide/silent_hosts.hpp"
#include "tools/cell/decide/tenant_view.hpp"

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
  void add_host(std::string name, double rate);
  void observe(Observer& observer);
  void expire(Machine& machine, Expiry expiry);
  void etcd_executed();
  // Faults.
  void fault();
  void fault_of(ModelHost& host, Duration time);
  void fault_of_observer(Duration time);
  void fault_of_etcd(const ModelHost& host);
  void heal();
  bool is_settled() const;
  // The operator.
  void revoke();
  /// As the command does: looks again and again, and expires hosts that have stopped.
  void wait();
  /// Reads ledger, policy and members; then `use`. Tries again until it succeeds.
  void read_tenant(std::function<void(const TenantView&)> use, std::function<void()> again);

  Terms terms_;
  Network network_;
  std::vector<std::unique_ptr<ModelHost>> hosts_;
  std::vector<std::unique_ptr<Channel>> news_;  // of each host
  std::vector<std::unique_ptr<Observer>> observers_;
  Machine operator_;
  Judge judge_;
  Texts texts_;
  Duration faulty_;  ///< How long faults happen.
  bool is_revoking_ = false;
  std::optional<ChangeProgress> progress_;  ///< Of the newest revocation that etcd has.
};

}  // namespace leasehold::cell::simulation
