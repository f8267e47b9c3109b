/// Other processes, by pidfd. A pid alone can be reused; a pidfd cannot.
#pragma once

#include <sys/types.h>

#include "common/unique_fd.hpp"

namespace leasehold {

/// Readable (POLLIN) once the process has exited.
/// Errors: ConnectionLost when there is no such process.
Result<UniqueFd> open_pidfd(pid_t pid);

/// SystemError when the signal may not be sent; success when the process is already gone.
Result<void> signal_pidfd(const UniqueFd& pidfd, int signal_number);

/// True once the process behind the pidfd has exited.
bool has_exited(const UniqueFd& pidfd);

/// Raises the soft limit of open descriptors to the hard one: an extent is a descriptor.
void raise_descriptor_limit();

/// Keeps other processes of the same user from reading this one's memory or descriptors.
void forbid_dumping();

}  // namespace leasehold
