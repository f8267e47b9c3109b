/// The metrics of a broker as text, from its answers. Pure.
#pragma once

#include <string>

#include "tools/monitor/broker_state.hpp"

namespace leasehold::monitor {

/// Throws nlohmann's exceptions for a `metrics` of another shape.
std::string broker_metrics(const BrokerState& state);

/// For a broker that does not answer.
std::string broker_is_down();

}  // namespace leasehold::monitor
