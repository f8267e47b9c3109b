#include "tools/brokerctl/wait_drained.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/client/all_pages.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr Duration kDrainPollInterval = std::chrono::milliseconds(100);

}  // namespace

Result<std::vector<wire::LeaseView>> wait_until_drained(const std::vector<LeaseId>& leases,
                                                        const Dependencies& dependencies) {
  while (true) {
    auto views = TRY(client::all_pages<wire::LeaseView>(dependencies.call));
    std::erase_if(views, [&leases](const wire::LeaseView& view) {
      return std::ranges::find(leases, view.lease) == leases.end();
    });
    const auto left = static_cast<std::size_t>(std::ranges::count_if(
        views, [](const wire::LeaseView& view) { return view.state != LeaseState::Fenced; }));
    if (dependencies.progress) dependencies.progress(leases.size() - left, leases.size());
    if (left == 0) return views;
    if (!dependencies.wait(kDrainPollInterval)) {
      return fail(Errc::TimedOut, fmt::format("interrupted; {} of {} leases are still draining",
                                              left, leases.size()));
    }
  }
}

Result<void> check_none_cut_off(const std::vector<wire::LeaseView>& leases) {
  const auto is_cut_off = [](const wire::LeaseView& lease) {
    return lease.reason == RevokeReason::DrainDeadline;
  };
  const auto first = std::ranges::find_if(leases, is_cut_off);
  if (first == leases.end()) return {};
  return fail(Errc::LeaseRevoked,
              fmt::format("{} of {} leases had requests left at the end of the grace and were "
                          "revoked, first lease {}; drain with a longer --grace-ms",
                          std::ranges::count_if(leases, is_cut_off), leases.size(),
                          to_string(first->lease)));
}

}  // namespace leasehold::brokerctl
