#include "tools/brokerctl/wait/wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ipc/client/all_pages.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr Duration kFencePollInterval = std::chrono::milliseconds(10);
constexpr Duration kReuseGrace = std::chrono::milliseconds(500);

Result<std::vector<wire::LeaseView>> query_leases(const std::vector<LeaseId>& leases,
                                                  const Dependencies& dependencies) {
  const auto all = TRY(client::all_pages<wire::LeaseView>(dependencies.call));
  std::vector<wire::LeaseView> found;
  for (const LeaseId lease : leases) {
    const auto view = std::ranges::find(all, lease, &wire::LeaseView::lease);
    if (view == all.end()) {
      return fail(
          Errc::UnknownLease,
          fmt::format("lease {} was revoked, but the broker no longer lists it", to_string(lease)));
    }
    found.push_back(*view);
  }
  return found;
}

bool is_fenced(const wire::LeaseView& lease) {
  return lease.state == LeaseState::Fenced;
}

std::unexpected<Error> interrupted(const std::vector<wire::LeaseView>& leases) {
  const auto open = std::ranges::find_if_not(leases, is_fenced);
  if (open == leases.end()) {
    return fail(Errc::TimedOut,
                "interrupted; the leases are Fenced, but their memory is not reusable yet; see "
                "`brokerctl leases`");
  }
  const std::string lease = to_string(open->lease);
  return fail(Errc::TimedOut, fmt::format("interrupted; lease {} is {} and stays revoked; see "
                                          "`brokerctl timeline {}`",
                                          lease, name(open->state), lease));
}

/// True if the lease's memory is free again, or needs an operator.
bool is_settled(const wire::LeaseView& lease) {
  return lease.clocks.reuse_ns >= 0 || lease.quarantined_extents > 0;
}

}  // namespace

Result<std::vector<wire::LeaseView>> wait_until_fenced(const std::vector<LeaseId>& leases,
                                                       Duration timeout,
                                                       const Dependencies& dependencies) {
  const TimePoint deadline = dependencies.clock->now() + timeout;
  std::optional<TimePoint> reuse_until;
  while (true) {
    auto views = TRY(query_leases(leases, dependencies));
    const TimePoint now = dependencies.clock->now();
    if (std::ranges::all_of(views, is_fenced)) {
      if (!reuse_until) reuse_until = now + kReuseGrace;
      if (std::ranges::all_of(views, is_settled) || now >= *reuse_until) return views;
    } else if (now >= deadline) {
      const auto open = std::ranges::find_if_not(views, is_fenced);
      const std::string lease = to_string(open->lease);
      return fail(
          Errc::TimedOut,
          fmt::format("lease {} is {}, not Fenced, after {} ms; see `brokerctl timeline {}`", lease,
                      name(open->state), timeout / std::chrono::milliseconds(1), lease));
    }
    if (!dependencies.wait(kFencePollInterval)) return interrupted(views);
  }
}

Result<void> check_none_quarantined(const std::vector<wire::LeaseView>& leases) {
  for (const wire::LeaseView& lease : leases) {
    if (lease.quarantined_extents == 0) continue;
    return fail(Errc::StillWritable,
                fmt::format("lease {} is fenced, but {} of its extents were written to after the "
                            "revocation and are quarantined; see `brokerctl quarantine list`",
                            to_string(lease.lease), lease.quarantined_extents));
  }
  return {};
}

}  // namespace leasehold::brokerctl
