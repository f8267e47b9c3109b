// What operators do: revoke, drain, replace workers and let them sleep, change policies, release
// quarantined memory.
#include <algorithm>

#include "tests/simulation/world.hpp"

namespace leasehold::simulation {

LeaseId World::any_lease() {
  const auto open = broker().state.leases.open_leases();
  if (open.empty() || machine_.one_in(16)) return {machine_.pick(5), 1 + machine_.pick(3)};
  return open[machine_.pick(open.size())];
}

/// The guaranteed tenant has a reserve of up to five extents, the scavenger stays one.
void World::change_policy(std::size_t index) {
  if (cell_agent_.is_of_cell(kTenantNames[index]))
    return cell_agent_.change_part(8 + machine_.pick(40));
  wire::TenantAdmit admit{.tenant = {std::string(kTenantNames[index])},
                          .max_blocks = 8 + machine_.pick(40)};
  if (index == kGuaranteed) {
    admit.tier = wire::Tier::Guaranteed;
    admit.reserved_blocks = std::min(*admit.max_blocks, 8 * machine_.pick(6));
  }
  broker().call(std::move(admit));
}

bool World::run_operator() {
  if (!broker().is_running() || broker().is_busy()) return false;
  if (cell_agent_.act()) return true;
  if (persistent_.has_adapters && machine_.one_in(3)) {
    adapter_operator_.act(workers_[machine_.pick(kWorkers)]->worker_name());
    return true;
  }
  const std::size_t index = machine_.pick(kTenants);
  const TenantId tenant{std::string(kTenantNames[index])};
  switch (machine_.pick(12)) {
    case 0:
      broker().call(wire::LeaseRevoke{.tenant = tenant});
      return true;
    case 4:
      return release_quarantined();
    case 1:
      change_policy(index);
      return true;
    case 2:
    case 3:
      broker().call(wire::LeaseDrain{.lease = any_lease(), .grace_ms = machine_.pick(1500)});
      return true;
    case 9:
      broker().call(wire::PrefixPublish{
          .worker = workers_[machine_.pick(workers_.size())]->worker_name(), .text = "a text"});
      return true;
    case 10:
      broker().call(
          wire::WorkerSleep{.worker = workers_[machine_.pick(workers_.size())]->worker_name()});
      return true;
    case 11:
      broker().call(
          wire::WorkerWake{.worker = workers_[machine_.pick(workers_.size())]->worker_name()});
      return true;
    case 8:
      replace_worker(machine_.pick(workers_.size()));
      return true;
    default:
      broker().call(wire::LeaseRevoke{.lease = any_lease()});
      return true;
  }
}

/// Refused while one of the two starts, or is replaced already.
void World::replace_worker(std::size_t old) {
  broker().call(wire::WorkerReplace{.worker = workers_[old]->worker_name(),
                                    .by = workers_[1 - old]->worker_name(),
                                    .grace_ms = machine_.pick(3000)});
}

bool World::release_quarantined() {
  bool any = false;
  for (const auto& [id, extent] : broker().state.extents.records()) {
    if (extent.state != ExtentState::Quarantined) continue;
    broker().call(wire::QuarantineRelease{.extent = id, .reason = "checked"});
    any = true;
  }
  for (const auto& [id, region] : broker().state.weights.regions()) {
    if (region.state != RegionState::Quarantined) continue;
    broker().call(wire::QuarantineRelease{.region = id, .reason = "checked"});
    any = true;
  }
  return any;
}

/// Does what StillWritable advises: kills the workers, then clears again.
void World::release_all_quarantined() {
  if (!release_quarantined()) return;
  settle();
  for (Worker* worker : workers_) worker->kill_pending = !worker->is_dead();
  settle();
  if (release_quarantined()) settle();
}

}  // namespace leasehold::simulation
