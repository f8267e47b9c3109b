#include "broker/decide/choose_worker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/unavailable.hpp"

namespace leasehold {
namespace {

/// A worker that has lost its weights, if no other one loads its model; or null.
const Worker* find_out_of_service(const State& state) {
  const Worker* found = nullptr;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state == WorkerState::Attached) return nullptr;
    if (worker.state == WorkerState::Ready && worker.out_of_service) found = &worker;
  }
  return found;
}

/// After a broker restart.
bool is_reconnecting(const Worker& worker) {
  return worker.resuming || worker.reattach_until != TimePoint{};
}

Result<Worker*> choose_named(State& state, const std::string& name) {
  Worker* named = TRY(find_worker(state, name));
  if (named->resuming) return std::unexpected(worker_reconnecting(name));
  if (named->state != WorkerState::Ready) {
    return fail(
        Errc::NoModelLoaded,
        fmt::format("worker {} has not loaded its model yet; retry, or name another", name));
  }
  if (named->stopping) return std::unexpected(worker_stopping(name));
  if (named->draining) return std::unexpected(worker_draining(name));
  if (named->replacement) {
    const Worker* by = state.workers.find(named->replacement->by);
    return std::unexpected(worker_replaced(name, by == nullptr ? "" : by->name));
  }
  if (named->out_of_service)
    return std::unexpected(worker_out_of_service(name, *named->out_of_service));
  return named;
}

}  // namespace

Result<Worker*> find_worker(State& state, const std::string& name) {
  if (Worker* worker = state.workers.find_serving(name)) return worker;
  const bool returns = std::ranges::any_of(state.workers.all(), [&](const auto& entry) {
    return entry.second.name == name && is_reconnecting(entry.second);
  });
  if (returns) return std::unexpected(worker_reconnecting(name));
  return fail(Errc::UnknownWorker,
              fmt::format("no worker {} is attached; see `brokerctl workers`", name));
}

Result<Worker*> choose_worker(State& state, const std::optional<std::string>& wanted) {
  if (wanted) return choose_named(state, *wanted);
  Worker* best = nullptr;
  std::size_t fewest = ~std::size_t{0};
  bool any_draining = false;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state != WorkerState::Ready) continue;
    any_draining = any_draining || (!worker.gets_leases() && !worker.out_of_service);
    if (!worker.gets_leases()) continue;
    const std::size_t held = state.leases.index().of(worker.id).open.size();
    if (held >= fewest) continue;
    fewest = held;
    best = state.workers.find(id);
  }
  if (best != nullptr) return best;
  if (any_draining) return std::unexpected(every_worker_draining());
  const auto returns = [](const auto& entry) { return is_reconnecting(entry.second); };
  if (std::ranges::any_of(state.workers.all(), returns)) {
    return fail(Errc::BrokerLost, "the broker restarted and its workers are reconnecting; retry");
  }
  if (const Worker* lost = find_out_of_service(state))
    return std::unexpected(worker_out_of_service(lost->name, *lost->out_of_service));
  return fail(Errc::NoModelLoaded,
              "no worker is ready; start one, or wait until it has loaded its model");
}

}  // namespace leasehold
