#include "tools/brokerctl/wait/wait.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/cli/print_error.hpp"
#include "ipc/client/parse_message.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr Duration kReadyPollInterval = std::chrono::milliseconds(100);

/// The workers that are not ready yet.
struct Pending {
  std::vector<std::string> workers;  ///< A phrase for each, such as "worker w1 is not listed".
  std::size_t total = 1;
};

bool serves(const wire::WorkerView& worker) {
  return worker.state == "ready" && (worker.drain == "serving" || worker.drain == "asleep");
}

/// True for a worker that may become ready without an operator.
bool is_expected(const wire::WorkerView& worker) {
  if (worker.state == "ready") return worker.drain == "out_of_service" || worker.drain == "waking";
  return worker.state == "attached" || worker.state == "lost";
}

std::string phrase(const wire::WorkerView& worker) {
  const std::string name = printable(worker.worker);
  if (worker.state == "attached") return "worker " + name + " is attached and loads its weights";
  if (worker.out_of_service) {
    return fmt::format("worker {} is out of service: {}", name, printable(*worker.out_of_service));
  }
  if (worker.state == "ready") {
    const bool is_drained = worker.drain == "draining" || worker.drain == "drained";
    const std::string hint =
        is_drained ? fmt::format(" (brokerctl undrain --worker {})", name) : "";
    return fmt::format("worker {} is {}{}", name, printable(worker.drain), hint);
  }
  return fmt::format("worker {} is {}", name, printable(worker.state));
}

/// A name may be listed twice: for a process that has exited, and for its successor.
Pending pending_of(const std::vector<std::string>& names,
                   const std::vector<wire::WorkerView>& listed) {
  Pending pending{.total = names.size()};
  for (const std::string& name : names) {
    const wire::WorkerView* last = nullptr;
    for (const wire::WorkerView& each : listed)
      if (each.worker == name && (last == nullptr || !serves(*last))) last = &each;
    if (last == nullptr) {
      pending.workers.push_back("worker " + name + " is not listed");
    } else if (!serves(*last)) {
      pending.workers.push_back(phrase(*last));
    }
  }
  if (!names.empty()) return pending;
  for (const wire::WorkerView& each : listed) {
    if (each.state != "gone") ++pending.total;
    if (is_expected(each)) pending.workers.push_back(phrase(each));
  }
  if (pending.workers.empty() && std::ranges::none_of(listed, serves)) {
    for (const wire::WorkerView& each : listed) pending.workers.push_back(phrase(each));
    if (listed.empty()) pending.workers.emplace_back("no worker is attached");
  }
  return pending;
}

/// True for the errors of a broker that has not started yet, or restarts.
bool is_away(Errc code) {
  return code == Errc::FileNotFound || code == Errc::ConnectionRefused ||
         code == Errc::ConnectionLost || code == Errc::TimedOut;
}

Result<Pending> query(const std::vector<std::string>& names, const Dependencies& dependencies) {
  const auto reply = dependencies.call("worker.list", wire::Json::object());
  if (reply) return pending_of(names, TRY(client::parse_items<wire::WorkerView>(*reply)));
  if (!is_away(reply.error().code)) return std::unexpected(reply.error());
  return Pending{.workers = {"the broker does not answer: " + reply.error().detail},
                 .total = std::max<std::size_t>(names.size(), 1)};
}

}  // namespace

Result<void> wait_until_ready(const std::vector<std::string>& workers, Duration timeout,
                              const Dependencies& dependencies) {
  const TimePoint deadline = dependencies.clock->now() + timeout;
  while (true) {
    const Pending pending = TRY(query(workers, dependencies));
    const std::size_t left = pending.workers.size();
    if (dependencies.progress)
      dependencies.progress(pending.total - std::min(left, pending.total), pending.total);
    if (left == 0) return {};
    if (dependencies.clock->now() >= deadline) {
      return fail(Errc::TimedOut, fmt::format("not ready after {} ms: {}; see `brokerctl workers` "
                                              "and the worker's log, or wait with a longer "
                                              "--timeout-ms",
                                              timeout / std::chrono::milliseconds(1),
                                              fmt::join(pending.workers, "; ")));
    }
    if (!dependencies.wait(kReadyPollInterval))
      return fail(Errc::TimedOut, fmt::format("interrupted; {}", fmt::join(pending.workers, "; ")));
  }
}

}  // namespace leasehold::brokerctl
