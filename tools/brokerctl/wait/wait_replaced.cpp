#include "tools/brokerctl/wait/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ipc/client/parse_message.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr Duration kReplacePollInterval = std::chrono::milliseconds(100);

/// A name may be listed twice: for a process that has exited, and for its successor.
Result<wire::WorkerView> find_replaced(const wire::WorkerReplace& replace,
                                       const Dependencies& dependencies) {
  const wire::Json reply = TRY(dependencies.call("worker.list", wire::Json::object()));
  auto listed = TRY(client::parse_items<wire::WorkerView>(reply));
  std::erase_if(listed,
                [&](const wire::WorkerView& each) { return each.worker != replace.worker; });
  const auto marked = std::ranges::find(listed, replace.by, [](const wire::WorkerView& each) {
    return each.replaced_by.value_or("");
  });
  if (marked != listed.end()) return *marked;
  if (listed.empty()) {
    return fail(
        Errc::UnknownWorker,
        fmt::format("worker {} is not listed any more; see `brokerctl events`", replace.worker));
  }
  return fail(Errc::IllegalTransition,
              fmt::format("worker {} is not replaced by worker {} any more and serves: that one "
                          "ended, an operator undrained {}, or the broker restarted; replace it "
                          "again",
                          replace.worker, replace.by, replace.worker));
}

}  // namespace

Result<wire::WorkerView> wait_until_replaced(std::size_t leases, const ReplaceWorker& replace,
                                             const Dependencies& dependencies) {
  const wire::WorkerReplace& message = replace.message;
  const TimePoint latest = dependencies.clock->now() + std::chrono::milliseconds(message.grace_ms) +
                           std::chrono::milliseconds(replace.timeout_ms);
  while (true) {
    wire::WorkerView view = TRY(find_replaced(message, dependencies));
    const std::size_t over = std::size_t{view.leases_moved} + view.leases_ended;
    if (dependencies.progress) dependencies.progress(std::min(over, leases), leases);
    if (view.drain == "replaced") return view;
    if (dependencies.clock->now() >= latest) {
      return fail(Errc::TimedOut, fmt::format("worker {} still has leases of tenants {} ms after "
                                              "the grace; see `brokerctl leases`",
                                              message.worker, replace.timeout_ms));
    }
    if (!dependencies.wait(kReplacePollInterval)) {
      return fail(Errc::TimedOut,
                  fmt::format("interrupted; worker {} is still being replaced; see `brokerctl "
                              "workers`",
                              message.worker));
    }
  }
}

}  // namespace leasehold::brokerctl
