/// Starts and ends the sampling of engine steps for other deciders.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Makes a worker that became ready sample its steps, if an operator watches.
void start_sampling(Decision& decision, const Worker& worker);

/// Ends the watch of this connection, if it has one. Workers stop sampling when no watcher is left.
void end_step_watch(Decision& decision, ConnectionId connection);

}  // namespace leasehold
