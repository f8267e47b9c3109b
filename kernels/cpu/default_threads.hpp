/// How many threads a CPU backend has unless an option says it.
#pragma once

#include <cstdint>
#include <optional>

namespace leasehold {

/// What a process may compute with.
struct UsableCpu {
  std::uint32_t cores = 1;      ///< On which it may run.
  std::optional<double> quota;  ///< Cores whose time its control groups allow; nothing: all.
};

/// Of this thread's cores and this process's control groups.
UsableCpu usable_cpu();

/// One thread per core. With a quota for less than the cores one core of it is left, because the
/// kernel stops all threads of a process that used its quota up, also those that poll. Pure.
std::uint32_t default_threads(const UsableCpu& usable);

}  // namespace leasehold
