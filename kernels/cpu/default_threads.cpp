#include "kernels/cpu/default_threads.hpp"

#include <algorithm>
#include <cmath>

#include "common/cpu_quota.hpp"
#include "common/cpu_set.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {
namespace {

/// Each has a gate, and so has the engine.
constexpr std::uint32_t kMaxThreads = kMaxGateThreads - 1;

}  // namespace

UsableCpu usable_cpu() {
  return {.cores = CpuSet::of_this_thread().count(), .quota = cpu_quota()};
}

std::uint32_t default_threads(const UsableCpu& usable) {
  std::uint32_t threads = std::min(usable.cores, kMaxThreads);
  if (usable.quota && *usable.quota < threads)
    threads = static_cast<std::uint32_t>(std::ceil(*usable.quota)) - 1;
  return std::max(threads, 1u);
}

}  // namespace leasehold
