/// Other processes, by pidfd. A pid alone can be reused; a pidfd cannot.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "common/unique_fd.hpp"

namespace leasehold {

/// Readable (POLLIN) once the process has exited.
/// Errors: ConnectionLost when there is no such process.
Result<UniqueFd> open_pidfd(pid_t pid);

/// SystemError when the signal may not be sent; success when the process is already gone.
Result<void> signal_pidfd(const UniqueFd& pidfd, int signal_number);

/// True once the process behind the pidfd has exited.
bool has_exited(const UniqueFd& pidfd);

/// Names one process of this boot for ever: a pid is used again, a pid with its start time is not.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< Clock ticks after boot. Source: proc(5), stat field 22.
  auto operator<=>(const ProcessIdentity&) const = default;
};

/// When the process started. Errors: ConnectionLost when there is no such process, SystemError.
Result<std::uint64_t> start_ticks_of(pid_t pid);

/// A pidfd of exactly that process. Errors: ConnectionLost when it is gone, SystemError.
Result<UniqueFd> open_pidfd(const ProcessIdentity& process);

/// Changes with every start of the machine. Source: proc(5), random/boot_id.
Result<std::string> boot_id();

/// Raises the soft limit of open descriptors to the hard one: an extent is a descriptor.
void raise_descriptor_limit();

inline constexpr std::chrono::microseconds kMinTimeSlice{100};

/// Asks for short turns on a core: this thread, and those it starts, then runs soon after it wakes,
/// also beside threads that compute. Best effort: kernels before 6.12 have no such thing.
/// Source: sched_setattr(2), sched_runtime of SCHED_OTHER.
void request_short_time_slice(std::chrono::microseconds time_slice = kMinTimeSlice);

/// Whether its first thread is of a class that goes before all ordinary ones.
bool is_real_time_process();

/// For a thread whose work somebody may wait for, but nobody in haste: an ordinary class whatever
/// it was started under, and a smaller share beside others. It is not starved. Best effort. Source:
/// sched(7), SCHED_BATCH and nice.
void use_batch_scheduling();

/// Keeps other processes of the same user from reading this one's memory or descriptors.
void set_not_dumpable();

}  // namespace leasehold
