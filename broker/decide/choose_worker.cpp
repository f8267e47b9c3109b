#include "broker/decide/choose_worker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {

Result<Worker*> choose_worker(State& state, const std::optional<std::string>& wanted) {
  if (wanted) {
    Worker* named = state.workers.find_serving(*wanted);
    if (named != nullptr && named->state == WorkerState::Ready) return named;
    return fail(Errc::UnknownWorker,
                fmt::format("worker {} is not ready; start it, or name another", *wanted));
  }
  Worker* best = nullptr;
  std::size_t fewest = ~std::size_t{0};
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state != WorkerState::Ready) continue;
    const std::size_t held = state.leases.index().of(worker.id).open.size();
    if (held >= fewest) continue;
    fewest = held;
    best = state.workers.find(id);
  }
  if (best != nullptr) return best;
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
