#include "tests/checks/bench/missed_steps.hpp"

#include <algorithm>

namespace leasehold::bench {

MissedSteps missed_steps(std::span<const events::StampedEvent> steps,
                         const std::vector<LeaseId>& leases) {
  MissedSteps result;
  std::uint64_t since_last = 0;
  for (const events::StampedEvent& stamped : steps) {
    const auto* step = std::get_if<events::BatchedDecodeStep>(&stamped.event);
    if (step == nullptr) continue;
    const auto first = std::ranges::find_first_of(step->per_seq_leases, leases);
    ++since_last;
    if (first == step->per_seq_leases.end()) continue;
    if (result.taken++ > 0) {
      result.longest_gap = std::max(result.longest_gap, since_last);
      result.missed += since_last - 1;
    }
    since_last = 0;
  }
  return result;
}

}  // namespace leasehold::bench
