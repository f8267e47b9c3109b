/// How many threads a CPU backend has unless an option sets it.
#pragma once

#include <cstdint>
#include <optional>

#include "common/machine/cpu_set.hpp"

namespace leasehold {

/// The CPUs that a process may use.
struct UsableCpu {
  std::uint32_t cores = 1;      ///< Cores on which the process may run.
  std::optional<double> quota;  ///< Limit of the process's control groups, in cores; nullopt: none.
};

/// Returns the size of `cores` and the quota of this process's control groups. An empty set means
/// that the kernel reported none; then all online cores count.
UsableCpu usable_cpu(const CpuSet& cores = CpuSet::of_this_thread());

/// One thread per core. If the quota is below the cores: ceil(quota) - 1 threads, at least one.
/// These threads cannot use up the quota, at which the kernel would stop all threads of the
/// process, even those that poll. Pure.
std::uint32_t default_threads(const UsableCpu& usable);

}  // namespace leasehold
