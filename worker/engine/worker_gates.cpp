#include "worker/engine/worker_gates.hpp"

#include <thread>

#include "common/fault_point.hpp"

namespace leasehold {

std::vector<ThreadGate> make_gates(const GateDependencies& dependencies, std::uint32_t first,
                                   std::uint32_t count) {
  std::vector<ThreadGate> gates;
  for (std::uint32_t thread = first; thread < first + count; ++thread) {
    gates.emplace_back(ThreadGate::Dependencies{
        .thread = thread,
        .announce = &dependencies.segment->announce(thread),
        .revocations = &dependencies.table->revocations(dependencies.worker),
        .stops = dependencies.stops,
        .probe = dependencies.probe});
  }
  return gates;
}

void UnitProbe::unit_polled(std::uint32_t, LaunchSite site, std::uint16_t, SequenceMask) {
  fault_point(FaultSite::WorkerUnitPolled);
  const bool watched = site != LaunchSite::WeightLoad;
  if (watched && slow_motion_.count() > 0) std::this_thread::sleep_for(slow_motion_);
}

}  // namespace leasehold
