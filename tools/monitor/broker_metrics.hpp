/// The metrics of a broker as text, from its answers. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "tools/monitor/broker_state.hpp"

namespace leasehold::monitor {

/// Throws nlohmann's exceptions for a `metrics` of another shape.
std::string broker_metrics(const BrokerState& state);

/// For a broker that does not answer.
std::string broker_is_down();

/// The monitor's own; they follow one of the texts above.
std::string monitor_metrics(std::uint64_t log_lines_dropped);

}  // namespace leasehold::monitor
