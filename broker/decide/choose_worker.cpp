#include "broker/decide/choose_worker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {

Result<Worker*> choose_worker(State& state, const std::optional<std::string>& wanted) {
  if (wanted) {
    Worker* named = state.workers.find_serving(*wanted);
    const bool ready = named != nullptr && named->state == WorkerState::Ready;
    if (ready && named->draining) {
      return fail(Errc::Draining, fmt::format("worker {} is draining; name another, or retry after "
                                              "`brokerctl undrain --worker {}`",
                                              *wanted, *wanted));
    }
    if (ready) return named;
    return fail(Errc::UnknownWorker,
                fmt::format("worker {} is not ready; start it, or name another", *wanted));
  }
  Worker* best = nullptr;
  std::size_t fewest = ~std::size_t{0};
  bool any_draining = false;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state != WorkerState::Ready) continue;
    any_draining = any_draining || worker.draining;
    if (worker.draining) continue;
    const std::size_t held = state.leases.index().of(worker.id).open.size();
    if (held >= fewest) continue;
    fewest = held;
    best = state.workers.find(id);
  }
  if (best != nullptr) return best;
  if (any_draining) {
    return fail(Errc::Draining,
                "every ready worker is draining; retry when one serves again or another is ready");
  }
  const auto is_returning = [](const auto& entry) {
    return entry.second.resuming || entry.second.reattach_until != TimePoint{};
  };
  if (std::ranges::any_of(state.workers.all(), is_returning)) {
    return fail(Errc::BrokerLost, "the broker restarted and its workers are reconnecting; retry");
  }
  return fail(Errc::NoModelLoaded,
              "no worker is ready; start one, or wait until it has loaded its model");
}

}  // namespace leasehold
