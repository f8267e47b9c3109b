/// The newest revocations that a broker has listed. The broker lists a lease until another one uses
/// its slot, so with many short leases it soon no longer lists one that an operator revoked. Pure.
///
/// Threads: one.
#pragma once

#include <algorithm>
#include <vector>

#include "ipc/control/messages/views.hpp"

namespace leasehold::monitor {

/// True for a revoked lease, unless its tenant ended it: released, expired, or the holder is gone.
inline bool is_cut_off(const wire::LeaseView& lease) {
  return lease.times.revoked_boottime_ns > 0 && lease.reason != RevokeReason::Released &&
         lease.reason != RevokeReason::TtlExpired && lease.reason != RevokeReason::HolderGone;
}

class PastRevocations {
 public:
  static constexpr std::size_t kMost = 50;

  /// Takes the leases of a list that were cut off, in their latest state. Returns those of earlier
  /// lists that `listed` does not have, newest first.
  std::vector<wire::LeaseView> update(const std::vector<wire::LeaseView>& listed) {
    std::erase_if(known_, [&](const wire::LeaseView& known) {
      return std::ranges::find(listed, known.lease, &wire::LeaseView::lease) != listed.end();
    });
    std::vector<wire::LeaseView> missing = known_;
    std::ranges::copy_if(listed, std::back_inserter(known_), is_cut_off);
    std::ranges::stable_sort(known_, std::greater{}, [](const wire::LeaseView& lease) {
      return lease.times.revoked_boottime_ns;
    });
    if (known_.size() > kMost) known_.resize(kMost);
    return missing;
  }

 private:
  std::vector<wire::LeaseView> known_;  // newest first
};

}  // namespace leasehold::monitor
