/// How long threads were ready but had no core: the noise in every figure on a shared machine.
///
/// Source: Linux Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::bench {

struct RunQueue {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0;  ///< Ready to run, without a core.
};

/// Parses "ran waited slices" as the kernel writes it. Errors: MalformedMessage.
Result<RunQueue> parse_schedstat(std::string_view text);

/// Indexed by thread name; the first thread is "main". Values of threads with the same name are
/// added up. Empty once the process has ended.
using ThreadRunQueues = std::map<std::string, RunQueue>;
ThreadRunQueues run_queues_of(pid_t process);

/// How long the threads of a process ran and waited between two snapshots.
ThreadRunQueues run_queues_between(const ThreadRunQueues& early, const ThreadRunQueues& late);

/// Adds the times of each thread.
void add(ThreadRunQueues& sum, const ThreadRunQueues& more);

RunQueue sum_of(const ThreadRunQueues& threads);

/// How long the named threads waited between two snapshots of their process.
std::uint64_t waited_ns(const ThreadRunQueues& early, const ThreadRunQueues& late,
                        std::span<const char* const> names);

/// The one-minute load average; -1 when it cannot be read.
double load_average();

}  // namespace leasehold::bench
