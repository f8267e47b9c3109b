/// How many threads a CPU backend has unless an option sets it.
#pragma once

#include <cstdint>
#include <optional>

#include "common/cpu_set.hpp"

namespace leasehold {

/// What a process may compute with.
struct UsableCpu {
  std::uint32_t cores = 1;      ///< On which it may run.
  std::optional<double> quota;  ///< Cores whose time its control groups allow; nothing: all.
};

/// With these cores and this process's control groups. An empty set means that the kernel did not
/// say: then all cores count that are online.
UsableCpu usable_cpu(const CpuSet& cores = CpuSet::of_this_thread());

/// One thread per core. With a quota below the cores: ceil(quota) - 1 threads, at least one, so
/// that they cannot use the quota up: the kernel then stops all threads of the process, even those
/// that poll. Pure.
std::uint32_t default_threads(const UsableCpu& usable);

}  // namespace leasehold
