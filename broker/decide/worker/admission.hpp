/// Reports to a worker whether tenants get new leases on it. Operators change that, and only the
/// broker knows it; the worker reports it in `/health`.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Call it when the worker becomes ready and after each change. A worker that is not ready gets the
/// message when it becomes ready.
void send_admission(Decision& decision, const Worker& worker);

}  // namespace leasehold
