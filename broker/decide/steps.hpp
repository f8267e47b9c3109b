/// The sampling of engine steps, as other decisions change it.
#pragma once

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Makes a worker that became ready sample, if an operator watches.
void start_sampling(Decision& decision, const Worker& worker);

/// Ends the watch of this connection, if it has one. Without a watcher the workers stop.
void end_step_watch(Decision& decision, ConnectionId connection);

}  // namespace leasehold
