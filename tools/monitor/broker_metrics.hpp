/// Formats the metrics of a broker from its replies. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "tools/monitor/broker_state.hpp"

namespace leasehold::monitor {

/// Throws exceptions of nlohmann::json if `metrics` has another structure.
std::string broker_metrics(const BrokerState& state);

/// The metrics of a broker that does not answer.
std::string broker_is_down();

/// The monitor's own metrics, which follow one of the texts above.
std::string monitor_metrics(std::uint64_t log_lines_dropped);

}  // namespace leasehold::monitor
