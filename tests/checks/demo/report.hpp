/// The observation and its checks as text and as JSON. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tests/checks/demo/checks.hpp"
#include "tests/checks/demo/settings.hpp"

namespace leasehold::demo {

/// The answers of chats, the table of leases with their clocks, then one line per check.
std::string report_text(const Observation& seen, const std::vector<Check>& checks,
                        const Settings& settings);

/// {"ok", "slow_motion_us", "leases": [...], "checks": [{"promise", "ok", "seen"}]}
wire::Json report_json(const Observation& seen, const std::vector<Check>& checks,
                       const Settings& settings);

}  // namespace leasehold::demo
