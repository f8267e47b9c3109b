/// Reports this process's state to the service manager behind $NOTIFY_SOCKET (sd_notify(3)).
/// Without one, or where it does not listen, nothing happens.
#pragma once

#include <string>

namespace leasehold {

/// Sends a state such as "READY=1", or "STATUS=…" for `systemctl status`.
void notify_service_manager(const std::string& state);

}  // namespace leasehold
