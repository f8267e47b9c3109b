#include "broker/decide/worker/choose_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "broker/decide/worker/unavailable.hpp"

namespace leasehold {
namespace {

const TextIdentity* identity_of(const Worker& worker) {
  return worker.text_identity ? &*worker.text_identity : nullptr;
}

bool serves_model(const Worker& worker, const WantedWorker& wanted) {
  if (!wanted.model || wanted.model->matches(worker.model, identity_of(worker))) return true;
  return std::ranges::find(worker.aliases, wanted.model->text) != worker.aliases.end();
}

bool continues_text(const Worker& worker, const WantedWorker& wanted) {
  return !wanted.text_identity || worker.text_identity == wanted.text_identity;
}

}  // namespace

bool serves(const Worker& worker, const WantedWorker& wanted) {
  const bool has_context = worker.max_context == 0 || worker.max_context >= wanted.min_context;
  return serves_model(worker, wanted) && continues_text(worker, wanted) && has_context;
}

std::string why_not(const Worker& worker, const WantedWorker& wanted) {
  if (!serves_model(worker, wanted))
    return fmt::format("worker {} serves {}", worker.name, model_label(worker));
  if (continues_text(worker, wanted)) {
    return fmt::format("worker {} holds {} tokens, and the text needs {}", worker.name,
                       worker.max_context, wanted.min_context);
  }
  if (!worker.text_identity) {
    return fmt::format("worker {} does not say what its tokens depend on; upgrade it", worker.name);
  }
  const bool is_same_content = worker.text_identity->content == wanted.text_identity->content;
  return fmt::format("on worker {} {}{}", worker.name,
                     difference(*wanted.text_identity, *worker.text_identity),
                     is_same_content ? ", where --any-arithmetic continues" : "");
}

std::string describe(const WantedWorker& wanted) {
  std::string what = "any model";
  if (wanted.model) what = "model " + wanted.model->text;
  if (wanted.text_identity) what = "a text that began on " + to_string(*wanted.text_identity);
  if (wanted.min_context == 0) return what;
  return fmt::format("{} with {} tokens of context", what, wanted.min_context);
}

std::string content_key(const Worker& worker) {
  return worker.text_identity ? content_name(*worker.text_identity) : worker.model;
}

std::string model_label(const Worker& worker) {
  if (!worker.text_identity) return worker.model;
  return fmt::format("{} ({})", worker.model, short_content_name(*worker.text_identity));
}

std::optional<ModelName> content_of_lease(State& state, LeaseId lease) {
  const auto found = state.leases.find(lease);
  const Worker* worker = found ? state.workers.find((*found)->worker()) : nullptr;
  if (worker == nullptr || content_key(*worker).empty()) return std::nullopt;
  return ModelName{content_key(*worker)};
}
namespace {

/// True for a worker that has not yet resumed completely after a broker restart.
bool is_reconnecting(const Worker& worker) {
  return worker.resuming || worker.reattach_until != TimePoint{};
}

Result<Worker*> choose_named(State& state, const WantedWorker& wanted) {
  const std::string& name = *wanted.name;
  Worker* named = TRY(find_worker(state, name));
  if (named->resuming) return std::unexpected(worker_reconnecting(name));
  if (named->state != WorkerState::Ready) {
    return fail(
        Errc::NoModelLoaded,
        fmt::format("worker {} has not loaded its model yet; retry, or name another", name));
  }
  if (!serves(*named, wanted)) {
    return fail(Errc::UnknownWorker, fmt::format("{} is asked for, and {}; name another worker",
                                                 describe(wanted), why_not(*named, wanted)));
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

template <class Predicate>
bool any_worker(const State& state, Predicate matches) {
  return std::ranges::any_of(state.workers.all(),
                             [&](const auto& entry) { return matches(entry.second); });
}

/// Refuses a request that fits several models: the broker would choose between them by the number
/// of leases. A ready worker that gets no leases counts too, so that a drain does not silently
/// change the model that is chosen.
Result<void> require_one_content(const State& state, const WantedWorker& wanted) {
  std::map<std::string, std::string> labels;  // by content
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state == WorkerState::Ready && serves(worker, wanted))
      labels.emplace(content_key(worker), model_label(worker));
  }
  if (labels.size() <= 1) return {};
  return fail(
      Errc::BadRequest,
      fmt::format("{} is asked for, and ready workers serve {} models: {}; name one with --model, "
                  "by its name or as sha256: and the first 8 digits",
                  describe(wanted), labels.size(), fmt::join(std::views::values(labels), ", ")));
}

/// One sentence for each ready worker, at most kMostNamed.
std::string served_instead(const State& state, const WantedWorker& wanted) {
  constexpr int kMostNamed = 4;
  std::string all;
  int named = 0;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state != WorkerState::Ready || serves(worker, wanted)) continue;
    if (named++ < kMostNamed) all += "; " + why_not(worker, wanted);
  }
  if (named > kMostNamed) all += fmt::format("; and {} more", named - kMostNamed);
  return all;
}

/// The error is retryable if a worker that serves it may become ready.
Error none_serves(const State& state, const WantedWorker& wanted) {
  const auto is_ready = [](const Worker& worker) { return worker.state == WorkerState::Ready; };
  const Worker* lost = nullptr;
  for (const auto& [id, worker] : state.workers.all()) {
    if (!is_ready(worker) || !serves(worker, wanted)) continue;
    if (!worker.out_of_service) return every_worker_draining();
    lost = &worker;
  }
  if (any_worker(state, is_reconnecting)) {
    return {Errc::BrokerLost, "the broker restarted and its workers are reconnecting; retry"};
  }
  const auto is_loading = [](const Worker& each) { return each.state == WorkerState::Attached; };
  if (lost != nullptr && !any_worker(state, is_loading))
    return worker_out_of_service(lost->name, *lost->out_of_service);
  if (lost != nullptr || !any_worker(state, is_ready)) {
    return {Errc::NoModelLoaded,
            "no worker is ready; start one, or wait until it has loaded its model"};
  }
  const std::string why =
      fmt::format("no ready worker serves {}", describe(wanted)) + served_instead(state, wanted);
  // A loading worker has not named its model yet, so it may serve this one. A worker that ended may
  // be started again, unless another worker has its name.
  const bool may_come = any_worker(state, [&](const Worker& each) {
    if (is_loading(each)) return true;
    return !is_ready(each) && serves(each, wanted) && !state.workers.is_serving(each.name);
  });
  if (may_come) return {Errc::NoModelLoaded, why + "; retry, or start a worker that serves it"};
  return {Errc::UnknownWorker, why + "; see `brokerctl workers`, or start a worker that serves it"};
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

Result<Worker*> choose_worker(State& state, const WantedWorker& wanted) {
  if (wanted.name) return choose_named(state, wanted);
  if (!wanted.text_identity) TRY(require_one_content(state, wanted));
  Worker* best = nullptr;
  std::pair<bool, std::size_t> fewest{true, ~std::size_t{0}};
  for (const auto& [id, worker] : state.workers.all()) {
    if (!worker.gets_leases() || !serves(worker, wanted)) continue;
    const bool is_asleep = worker.sleep == SleepState::Asleep;
    const std::pair held{is_asleep, state.leases.index().of(worker.id).open.size()};
    if (held >= fewest) continue;
    fewest = held;
    best = state.workers.find(id);
  }
  if (best != nullptr) return best;
  return std::unexpected(none_serves(state, wanted));
}

}  // namespace leasehold
