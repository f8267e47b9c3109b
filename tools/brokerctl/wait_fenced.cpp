#include "tools/brokerctl/wait_fenced.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/cli/all_pages.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr Duration kReuseGrace = std::chrono::milliseconds(500);

Result<std::vector<wire::LeaseView>> query_leases(const std::vector<LeaseId>& leases,
                                                  const Dependencies& dependencies) {
  const auto all = TRY(cli::all_pages<wire::LeaseView>(dependencies.call));
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

bool fenced(const wire::LeaseView& lease) {
  return lease.state == LeaseState::Fenced;
}

/// Nothing more will happen to its memory by itself.
bool settled(const wire::LeaseView& lease) {
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
    if (std::ranges::all_of(views, fenced)) {
      if (!reuse_until) reuse_until = now + kReuseGrace;
      if (std::ranges::all_of(views, settled) || now >= *reuse_until) return views;
    } else if (now >= deadline) {
      const auto open = std::ranges::find_if_not(views, fenced);
      return fail(Errc::TimedOut,
                  fmt::format("lease {} is {} and not fenced after {} ms", to_string(open->lease),
                              name(open->state), timeout / std::chrono::milliseconds(1)));
    }
    if (!dependencies.wait(kPollInterval)) {
      return fail(Errc::TimedOut, "interrupted while waiting for the fence; the revocation stands");
    }
  }
}

Result<void> check_none_quarantined(const std::vector<wire::LeaseView>& leases) {
  for (const wire::LeaseView& lease : leases) {
    if (lease.quarantined_extents == 0) continue;
    return fail(Errc::StillWritable,
                fmt::format("lease {} is fenced, but {} of its extents were written to after they "
                            "were taken back; nobody gets them, see `brokerctl quarantine list`",
                            to_string(lease.lease), lease.quarantined_extents));
  }
  return {};
}

}  // namespace leasehold::brokerctl
