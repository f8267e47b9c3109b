#include "kernels/cpu/default_threads.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "common/machine/cpu_quota.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {
namespace {

/// Each thread has a gate, and the engine has one more.
constexpr std::uint32_t kMaxThreads = kMaxGateThreads - 1;

}  // namespace

UsableCpu usable_cpu(const CpuSet& cores) {
  return {.cores = cores.empty() ? std::thread::hardware_concurrency() : cores.count(),
          .quota = cpu_quota()};
}

std::uint32_t default_threads(const UsableCpu& usable) {
  std::uint32_t threads = std::min(usable.cores, kMaxThreads);
  if (usable.quota && *usable.quota < threads)
    threads = static_cast<std::uint32_t>(std::ceil(*usable.quota)) - 1;
  return std::max(threads, 1u);
}

}  // namespace leasehold
