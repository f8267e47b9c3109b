/// Judges a hostile run, and sums it up. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/checks/demo/checks.hpp"
#include "tools/checks/soak/hostile/record.hpp"

namespace leasehold::soak {

/// Most that a process may grow under attack, from its bounds (SECURITY.md). Worker: a line of 1
/// MiB on each of 384 connections, twice while it is parsed, and 64 MiB each of unread output and
/// unparsed requests. Broker: a line of 1 MiB on each of 256 connections of two strangers.
inline constexpr std::uint64_t kMaxWorkerGrowthBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMaxBrokerGrowthBytes = std::uint64_t{512} << 20;

/// Inter-token gaps in µs of one text within a window. A gap in which the tenant reported something
/// else, such as a revocation, is left out.
std::vector<double> gaps_us(const demo::TenantRecord& record, const Window& window);

/// Everything that does not depend on the speed of the machine.
std::vector<demo::Check> judge_hostile(const HostileRecord& record);

/// Figures and checks. `unit_us`: the mean duration of one unit of the engine.
nlohmann::json hostile_json(const HostileRecord& record, double units_per_step);

std::string hostile_text(const nlohmann::json& report);

}  // namespace leasehold::soak
