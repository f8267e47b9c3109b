/// The metrics of a broker as text, from its answers. Pure.
#pragma once

#include <string>

#include "ipc/control/messages_views.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold::monitor {

/// What the broker answered.
struct BrokerState {
  wire::StatusView status;
  control::Json metrics;  ///< Of `metrics.read` (broker/server/lists.cpp).
};

/// Throws nlohmann's exceptions for a `metrics` of another shape.
std::string broker_metrics(const BrokerState& state);

/// For a broker that does not answer.
std::string broker_is_down();

}  // namespace leasehold::monitor
