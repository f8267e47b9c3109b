#include "broker/supervise/quiet_observer.hpp"

namespace leasehold {

void QuietObserver::watch(const WorkerSegmentReader& segment, Request request) {
  watches_.push_back({&segment, segment.snapshot(), std::move(request)});
}

std::vector<LaunchQuiet> QuietObserver::observe() {
  std::vector<LaunchQuiet> proofs;
  std::erase_if(watches_, [&proofs](const Watch& watch) {
    if (!watch.segment->is_quiet_since(watch.seen, watch.request.scope)) return false;
    for (const LeaseId lease : watch.request.leases) proofs.push_back(LaunchQuiet(lease));
    return true;
  });
  return proofs;
}

std::vector<LaunchQuiet> QuietObserver::observe_for(Duration at_most, const Clock& clock) {
  const TimePoint give_up = clock.now() + at_most;
  std::vector<LaunchQuiet> proofs = observe();
  while (is_waiting() && clock.now() < give_up) {
    for (const LaunchQuiet& proof : observe()) proofs.push_back(proof);
  }
  return proofs;
}

void QuietObserver::forget(AttachmentId worker) {
  std::erase_if(watches_, [worker](const Watch& watch) { return watch.request.worker == worker; });
}

}  // namespace leasehold
