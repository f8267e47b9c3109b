/// Judges a hostile run, and sums it up. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/checks/demo/checks.hpp"
#include "tools/checks/soak/hostile/record.hpp"

namespace leasehold::soak {

/// Limits for the private memory that attackers may make a process use, from the bounds in
/// SECURITY.md. Worker: 64 MiB each for waiting input, unread output and unparsed requests, and the
/// same amount again for parsing. Broker: 32 MiB each for input and output of tenants.
inline constexpr std::uint64_t kMaxWorkerGrowthBytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kMaxBrokerGrowthBytes = std::uint64_t{128} << 20;

/// Inter-token gaps in µs of one text within a window. Omits gaps in which the tenant reported
/// another event, such as a revocation.
std::vector<double> gaps_us(const demo::TenantRecord& record, const Window& window);

/// Checks everything that does not depend on the speed of the machine.
std::vector<demo::Check> judge_hostile(const HostileRecord& record);

/// Figures and checks. `unit_us`: the mean duration of one unit of the engine.
nlohmann::json hostile_json(const HostileRecord& record, double units_per_step);

std::string hostile_text(const nlohmann::json& report);

}  // namespace leasehold::soak
