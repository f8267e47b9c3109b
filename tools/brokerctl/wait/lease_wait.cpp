#include "tools/brokerctl/wait/lease_wait.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/client/parse_message.hpp"

namespace leasehold::brokerctl {
namespace {

using std::chrono::milliseconds;

constexpr Duration kLongestCall = milliseconds(250);

}  // namespace

Result<bool> LeaseWait::wait(Duration at_most, const Dependencies& dependencies) {
  const Duration timeout = std::clamp<Duration>(at_most, Duration::zero(), kLongestCall);
  do {
    const std::size_t asked = std::min(open_.size(), wire::LeaseWait::kMaxLeases);
    const wire::LeaseWait call{.leases = {open_.begin(), open_.begin() + asked},
                               .worker = rule_.worker,
                               .until_free = rule_.until_free,
                               .timeout_ms = timeout / milliseconds(1)};
    const wire::Json answer = TRY(dependencies.call(wire::LeaseWait::kMethod, call.to_json()));
    auto reply = TRY(client::parse_message<wire::LeasesWaited>(answer));
    const bool advances = !reply.items.empty() || call.leases.empty();
    for (wire::LeaseView& view : reply.items) over_.insert_or_assign(view.lease, std::move(view));
    std::erase_if(open_, [this](LeaseId lease) { return over_.contains(lease); });
    open_count_ = reply.open + (open_.size() - std::min(open_.size(), asked));
    if (reply.oldest_open) {
      oldest_open_ = std::move(reply.oldest_open);
      return false;
    }
    if (!advances)
      return fail(Errc::MalformedMessage, "the broker's replies to lease.wait do not advance");
  } while (!open_.empty());
  return true;
}

std::vector<wire::LeaseView> LeaseWait::views() const {
  auto left = over_;
  std::vector<wire::LeaseView> views;
  for (const LeaseId lease : leases_)
    if (auto node = left.extract(lease)) views.push_back(std::move(node.mapped()));
  for (auto& [lease, view] : left) views.push_back(std::move(view));
  return views;
}

}  // namespace leasehold::brokerctl
