/// Processes, by pidfd: the kernel reuses pids, a pidfd always refers to one process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

/// Returns a pidfd, which is readable (POLLIN) once the process has exited.
/// Errors: ConnectionLost when there is no such process.
Result<UniqueFd> open_pidfd(pid_t pid);

/// Sends a signal; succeeds when the process has already exited. Errors: SystemError.
Result<void> signal_pidfd(const UniqueFd& pidfd, int signal_number);

/// True once the process behind the pidfd has exited.
bool has_exited(const UniqueFd& pidfd);

/// Identifies one process of this boot: a pid is reused, a pid with its start time is not.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< Clock ticks after boot. Source: proc(5), stat field 22.
  auto operator<=>(const ProcessIdentity&) const = default;
};

/// When the process started. Errors: ConnectionLost when there is no such process, SystemError.
Result<std::uint64_t> start_ticks_of(pid_t pid);

/// A pidfd of exactly that process. Errors: ConnectionLost when it has exited, SystemError.
Result<UniqueFd> open_pidfd(const ProcessIdentity& process);

/// The kernel's boot id, different after every boot. Source: proc(5), random/boot_id.
Result<std::string> boot_id();

/// Raises the soft limit of open descriptors to the hard limit: each extent needs a descriptor.
void raise_descriptor_limit();
/// How many descriptors this process may have open.
std::uint64_t descriptor_limit();

inline constexpr std::chrono::microseconds kMinTimeSlice{100};

/// Requests a short time slice for this thread and threads it starts, so that they run soon after
/// they wake, even while other threads compute. Best effort: kernels before 6.12 ignore it.
/// Source: sched_setattr(2), sched_runtime of SCHED_OTHER.
void request_short_time_slice(std::chrono::microseconds time_slice = kMinTimeSlice);

/// Names the calling thread as `ps -L`, `top -H` and /proc show it. The first thread keeps the
/// program's name. Precondition: at most 15 bytes. Source: prctl(2), PR_SET_NAME.
void set_thread_name(const char* name);

/// True when the process's first thread has a real-time scheduling class.
bool is_real_time_process();

/// Gives this thread an ordinary scheduling class and a smaller share than others, for work without
/// a deadline. It is not starved. Best effort. Source: sched(7), SCHED_BATCH and nice.
void use_batch_scheduling();

/// Lets threads run that wait for this core and that the scheduler would choose now. It compares
/// them with a running thread only when one wakes and at ticks, which may be 4 ms apart, so long
/// work beside urgent threads calls this often. Seen with Linux 6.18. Source: sched_yield(2).
void give_way();

/// Keeps other processes of the same user from reading this one's memory or descriptors.
void set_not_dumpable();

}  // namespace leasehold
