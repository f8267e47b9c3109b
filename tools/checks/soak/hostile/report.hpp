/// Judges a hostile run, and sums it up. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/checks/demo/checks.hpp"
#include "tools/checks/soak/hostile/record.hpp"

namespace leasehold::soak {

/// Private memory that attackers may make a process use, by the bounds of SECURITY.md. Worker: 64
/// MiB each of input that waits, unread output and unparsed requests, and as much again to parse
/// it. Broker: 32 MiB each of input and output of tenants.
inline constexpr std::uint64_t kMaxWorkerGrowthBytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kMaxBrokerGrowthBytes = std::uint64_t{128} << 20;

/// Inter-token gaps in µs of one text within a window. A gap in which the tenant reported something
/// else, such as a revocation, is left out.
std::vector<double> gaps_us(const demo::TenantRecord& record, const Window& window);

/// Everything that does not depend on the speed of the machine.
std::vector<demo::Check> judge_hostile(const HostileRecord& record);

/// Figures and checks. `unit_us`: the mean duration of one unit of the engine.
nlohmann::json hostile_json(const HostileRecord& record, double units_per_step);

std::string hostile_text(const nlohmann::json& report);

}  // namespace leasehold::soak
