/// Reports this process's state to the service manager behind $NOTIFY_SOCKET (sd_notify(3)). Does
/// nothing without a service manager.
///
/// A manager that does not read delays the caller once, by `kManagerTimeout`; after that, messages
/// are lost until the manager takes one again. libsystemd's sd_notify would wait for ever.
/// Threads: any.
#pragma once

#include <chrono>
#include <string>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

inline constexpr std::chrono::milliseconds kManagerTimeout{250};

/// Sends a state such as "READY=1", or "STATUS=…" for `systemctl status`. A message that is lost is
/// not an error.
void notify_service_manager(const std::string& state);

/// Sends a state and a descriptor, for FDSTORE=1. Succeeds without a manager.
/// Errors: TimedOut when the manager does not read; SystemError when it does not listen.
Result<void> send_to_service_manager(const std::string& state, const UniqueFd& fd);

}  // namespace leasehold
