#include "broker/books/shares.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace leasehold {
namespace {

struct Target {
  Share* share;
  std::uint32_t wanted = 0;
};

/// The reachable workers; the one whose last admission is the oldest comes first.
std::vector<Target> in_turn(Shares& shares) {
  std::vector<Target> order;
  for (auto& [worker, share] : shares) {
    if (share.reachable) order.push_back({&share});
  }
  std::ranges::stable_sort(order, {}, [](const Target& each) { return each.share->turn; });
  return order;
}

void choose_targets(std::vector<Target>& order, std::uint32_t limit) {
  std::uint32_t left = limit;
  for (bool assigned_any = true; assigned_any && left > 0;) {
    assigned_any = false;
    for (Target& each : order) {
      if (left == 0 || each.wanted >= each.share->demand) continue;
      ++each.wanted;
      --left;
      assigned_any = true;
    }
  }
  for (Target& each : order) {
    const std::uint32_t unused = each.share->assigned - std::min(each.share->assigned, each.wanted);
    const std::uint32_t kept = std::min(left, unused);
    each.wanted += kept;
    left -= kept;
  }
}

/// Raises each share up to what the other workers leave free of the limit. A worker's own `may_run`
/// does not limit its own share.
void raise(std::span<const Target> order, const Shares& shares, std::uint32_t limit) {
  std::uint64_t taken = 0;
  for (const auto& [worker, share] : shares) taken += share.may_run;
  for (const Target& each : order) {
    Share& share = *each.share;
    const std::uint64_t others = taken - share.may_run;
    while (share.assigned < each.wanted && others + share.assigned < limit) ++share.assigned;
    share.may_run = std::max(share.may_run, share.assigned);
    taken = others + share.may_run;
  }
}

}  // namespace

void divide(Shares& shares, std::uint32_t limit) {
  std::vector<Target> order = in_turn(shares);
  choose_targets(order, limit);
  if (shares.size() == 1 && order.size() == 1) order.front().wanted = limit;
  for (const Target& each : order) {
    each.share->assigned = std::min(each.share->assigned, each.wanted);
  }
  raise(order, shares, limit);
}

std::uint64_t enter_report(Shares& shares, AttachmentId worker, const wire::TenantUsage& usage) {
  const auto found = shares.find(worker);
  if (found == shares.end()) return 0;  // the worker's leases ended meanwhile
  Share& share = found->second;
  share.demand = usage.running + usage.waiting;
  share.reported = usage.revision;
  const std::uint64_t newly = std::max(usage.admitted, share.admitted) - share.admitted;
  if (newly > 0) {
    share.admitted = usage.admitted;
    for (const auto& [id, other] : shares) share.turn = std::max(share.turn, other.turn + 1);
  }
  if (usage.revision == share.sent.revision) {
    share.may_run = std::max(share.assigned, usage.running);
  }
  return newly;
}

}  // namespace leasehold
