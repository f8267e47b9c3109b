#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "ipc/client/parse_message.hpp"
#include "tools/brokerctl/wait/lease_wait.hpp"
#include "tools/brokerctl/wait/wait.hpp"

namespace leasehold::brokerctl {
namespace {

/// Errors: TimedOut for a lease that is open `timeout_ms` after its revocation or the drain.
Result<void> check_not_overdue(const wire::LeaseView& lease, TimePoint drain_end,
                               std::int64_t timeout_ms, TimePoint now) {
  const TimePoint revoked{lease.times.revoked_boottime_ns};
  const bool is_revoked = lease.state == LeaseState::Revoked && revoked != TimePoint{};
  const TimePoint since = is_revoked ? revoked : drain_end;
  if (now < since + std::chrono::milliseconds(timeout_ms)) return {};
  return fail(Errc::TimedOut,
              fmt::format("lease {} is {}, not Fenced, {} ms after its {}: worker {} has not "
                          "proven that it stopped; see `brokerctl workers`",
                          to_string(lease.lease), name(lease.state), timeout_ms,
                          is_revoked ? "revocation" : "grace", lease.worker));
}

/// True if the tenant ended the lease, or its last request had ended.
bool ended_by_tenant(RevokeReason reason) {
  return reason == RevokeReason::Released || reason == RevokeReason::HolderGone ||
         reason == RevokeReason::TtlExpired;
}

}  // namespace

Result<std::vector<wire::LeaseView>> wait_until_drained(const std::vector<LeaseId>& leases,
                                                        const Drain& drain,
                                                        const Dependencies& dependencies) {
  const TimePoint drain_end =
      dependencies.clock->now() + std::chrono::milliseconds(drain.message.grace_ms);
  LeaseWait wait(leases, {.worker = drain.message.worker});
  while (true) {
    const bool is_over = TRY(wait.wait(Duration::max(), dependencies));
    if (dependencies.progress) dependencies.progress(wait.over(), wait.over() + wait.open());
    if (is_over) return wait.views();
    TRY(check_not_overdue(wait.oldest_open(), drain_end, drain.timeout_ms,
                          dependencies.clock->now()));
    if (!dependencies.wait(Duration::zero())) {
      return fail(Errc::TimedOut, fmt::format("interrupted; {} of {} leases are still draining; "
                                              "see `brokerctl leases`",
                                              wait.open(), wait.over() + wait.open()));
    }
  }
}

Result<void> check_all_ended_normally(std::span<const wire::LeaseView> leases) {
  const auto is_cut_off = [](const wire::LeaseView& lease) {
    return lease.reason != RevokeReason::None && !ended_by_tenant(lease.reason);
  };
  const auto first = std::ranges::find_if(leases, is_cut_off);
  if (first != leases.end()) {
    return fail(
        Errc::LeaseRevoked,
        fmt::format("{} of {} leases were revoked before their requests had ended, first lease "
                    "{} ({}); {}",
                    std::ranges::count_if(leases, is_cut_off), leases.size(),
                    to_string(first->lease), name(first->reason),
                    first->reason == RevokeReason::DrainDeadline
                        ? "drain with a longer --grace-ms"
                        : "see `brokerctl timeline " + to_string(first->lease) + "`"));
  }
  const auto unknown = std::ranges::find(leases, RevokeReason::None, &wire::LeaseView::reason);
  if (unknown == leases.end()) return {};
  const std::string lease = to_string(unknown->lease);
  return fail(
      Errc::StaleGeneration,
      fmt::format("lease {} ended between two calls and its slot is in use again; `brokerctl "
                  "events --lease {}` shows how it ended",
                  lease, lease));
}

Result<void> check_worker_drained(const std::string& worker, const Dependencies& dependencies) {
  const wire::Json reply = TRY(dependencies.call("worker.list", wire::Json::object()));
  auto processes = TRY(client::parse_items<wire::WorkerView>(reply));
  std::erase_if(processes, [&](const wire::WorkerView& each) { return each.worker != worker; });
  const auto serving = std::ranges::find_if(processes, [](const wire::WorkerView& each) {
    return each.state == "attached" || each.state == "ready";
  });
  if (serving == processes.end()) {
    return fail(Errc::UnknownWorker,
                fmt::format("the leases ended, but worker {} is {}; a new process of its name "
                            "serves again",
                            worker, processes.empty() ? "gone" : processes.back().state));
  }
  if (serving->drain == "drained") return {};
  const bool serves = serving->drain != "draining";
  return fail(serves ? Errc::IllegalTransition : Errc::Draining,
              fmt::format("the leases ended, but worker {} (process {}) {}; drain it again", worker,
                          serving->pid,
                          serves ? "serves: it was undrained, or it is a new process of that name"
                                 : "has other leases by now"));
}

}  // namespace leasehold::brokerctl
