/// The figures of a hostile run. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/checks/soak/hostile/record.hpp"

namespace leasehold::soak {

/// Inter-token gaps in µs of one text within a window. A gap in which the tenant reported something
/// else, such as a revocation, is left out.
std::vector<double> gaps_us(const demo::TenantRecord& record, const Window& window);

/// Figures and checks. `unit_us`: the mean duration of one unit of the engine.
nlohmann::json hostile_json(const HostileRecord& record, double units_per_step);

std::string hostile_text(const nlohmann::json& report);

}  // namespace leasehold::soak
