#include "worker/schedule/memory/swap_costs.hpp"

#include <algorithm>

namespace leasehold {
namespace {

constexpr double kNewCopy = 0.125;    // weight of a new sample
constexpr double kMostCopyStall = 4;  // limit of a sample, in multiples of the expected time

}  // namespace

bool SwapCosts::is_swap_cheaper(const SwapWork& work, std::optional<double> row_ns) const {
  return row_ns && byte_ns_ * static_cast<double>(work.copied_bytes) <
                       *row_ns * static_cast<double>(work.rows_to_repeat);
}

void SwapCosts::note_copy(Duration copying, std::uint64_t bytes) {
  if (copying <= Duration::zero() || bytes == 0) return;
  const double byte_ns = static_cast<double>(copying.count()) / static_cast<double>(bytes);
  byte_ns_ += kNewCopy * (std::min(byte_ns, kMostCopyStall * byte_ns_) - byte_ns_);
}

void SwapCosts::note_dropped() {
  byte_ns_ -= kNewCopy * std::max(0.0, byte_ns_ - first_byte_ns_);
}

}  // namespace leasehold
