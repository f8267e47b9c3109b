/// How long threads were ready but had no core: the noise in every figure on a shared machine.
///
/// Source: Linux Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::bench {

struct RunQueue {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0;  ///< Ready to run, without a core.
};

/// "ran waited slices" as the kernel writes it. Errors: MalformedMessage.
Result<RunQueue> parse_schedstat(std::string_view text);

/// For one thread, and the sum over the current threads of a process. Zero once it has ended.
RunQueue run_queue_of_thread(pid_t process, pid_t thread);
RunQueue run_queue_of_process(pid_t process);

/// The one-minute load average; -1 when it cannot be read.
double load_average();

}  // namespace leasehold::bench
