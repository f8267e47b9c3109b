#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tools/brokerctl/wait/lease_wait.hpp"
#include "tools/brokerctl/wait/wait.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr Duration kReuseGrace = std::chrono::milliseconds(500);

std::unexpected<Error> not_fenced(const wire::LeaseView& open, Duration timeout) {
  const std::string lease = to_string(open.lease);
  return fail(Errc::TimedOut,
              fmt::format("lease {} is {}, not Fenced, after {} ms; see `brokerctl timeline {}`",
                          lease, name(open.state), timeout / std::chrono::milliseconds(1), lease));
}

std::unexpected<Error> interrupted(const wire::LeaseView& open) {
  if (open.state == LeaseState::Fenced) {
    return fail(Errc::TimedOut,
                "interrupted; the leases are Fenced, but their memory is not reusable yet; see "
                "`brokerctl leases`");
  }
  const std::string lease = to_string(open.lease);
  return fail(Errc::TimedOut, fmt::format("interrupted; lease {} is {} and stays revoked; see "
                                          "`brokerctl timeline {}`",
                                          lease, name(open.state), lease));
}

}  // namespace

Result<std::vector<wire::LeaseView>> wait_until_fenced(const std::vector<LeaseId>& leases,
                                                       Duration timeout,
                                                       const Dependencies& dependencies) {
  const TimePoint deadline = dependencies.clock->now() + timeout;
  LeaseWait fenced(leases);
  while (!TRY(fenced.wait(deadline - dependencies.clock->now(), dependencies))) {
    if (dependencies.clock->now() >= deadline) return not_fenced(fenced.oldest_open(), timeout);
    if (!dependencies.wait(Duration::zero())) return interrupted(fenced.oldest_open());
  }
  const TimePoint reuse_until = dependencies.clock->now() + kReuseGrace;
  LeaseWait free(leases, {.worker = {}, .until_free = true});
  while (!TRY(free.wait(reuse_until - dependencies.clock->now(), dependencies)) &&
         dependencies.clock->now() < reuse_until) {
    if (!dependencies.wait(Duration::zero())) return interrupted(free.oldest_open());
  }
  std::vector<wire::LeaseView> views = fenced.views();
  auto view = views.begin();
  for (wire::LeaseView& newer : free.views()) {        // in the same order
    if (newer.reason == RevokeReason::None) continue;  // its slot has another lease by now
    view = std::ranges::find(view, views.end(), newer.lease, &wire::LeaseView::lease);
    *view = std::move(newer);
  }
  return views;
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
