/// The promises that a hostile run must keep, and its figures. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/checks/runner/check.hpp"
#include "tests/checks/soak/hostile/record.hpp"

namespace leasehold::soak {

/// Limits for the private memory that attackers may make a process use, from the bounds in
/// SECURITY.md. Worker: 64 MiB each for waiting input, unread output and unparsed requests, and the
/// same amount again for parsing. Broker: 32 MiB each for input and output of tenants.
inline constexpr std::uint64_t kMaxWorkerGrowthBytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kMaxBrokerGrowthBytes = std::uint64_t{128} << 20;

/// Checks everything that does not depend on the speed of the machine.
std::vector<runner::Check> judge_hostile(const HostileRecord& record);

/// Inter-token gaps in µs of one text within a window. A gap in which the tenant reported something
/// else, such as a revocation, is left out.
std::vector<double> gaps_us(const runner::TenantRecord& record, const Window& window);

/// Figures and checks. `unit_us`: the mean duration of one unit of the engine.
nlohmann::json hostile_json(const HostileRecord& record, double units_per_step);

std::string hostile_text(const nlohmann::json& report);

}  // namespace leasehold::soak
