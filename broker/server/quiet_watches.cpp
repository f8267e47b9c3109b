#include "broker/server/quiet_watches.hpp"

#include <utility>

namespace leasehold {
namespace {

/// How often worker segments are polled while launches that may use a revoked lease run.
constexpr auto kInterval = std::chrono::microseconds(200);
/// How long a new watch polls: longer than a unit on a CPU takes while the broker has a core, and
/// short compared to a journal write.
constexpr auto kSpin = std::chrono::microseconds(100);

}  // namespace

/// Polls before the journal is written: leases that become quiet now need neither the wakeup_fd nor
/// a timer.
void QuietWatches::watch(const WorkerSegmentReader& segment, QuietObserver::Request request) {
  observer_.watch(segment, std::move(request));
  post(observer_.observe_for(kSpin, clock_));
}

void QuietWatches::observe() {
  if (!observer_.is_waiting()) return;
  std::vector<LaunchQuiet> proofs = observer_.observe();
  if (observer_.is_waiting()) observe_soon();
  post(std::move(proofs));
}

void QuietWatches::observe_soon() {
  if (std::exchange(is_armed_, true)) return;
  timer_.expires_after(kInterval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    is_armed_ = false;
    if (!error) observe();
  });
}

void QuietWatches::post(std::vector<LaunchQuiet> proofs) {
  if (!proofs.empty()) post_(QuietObserved{std::move(proofs), clock_.now()});
}

}  // namespace leasehold
