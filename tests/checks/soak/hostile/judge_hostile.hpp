/// The promises that a hostile run must keep. Pure.
#pragma once

#include <vector>

#include "tests/checks/demo/checks.hpp"
#include "tests/checks/soak/hostile/record.hpp"

namespace leasehold::soak {

/// Private memory that attackers may make a process use, by the bounds of SECURITY.md. Worker: 64
/// MiB each of input that waits, unread output and unparsed requests, and as much again to parse
/// it. Broker: 32 MiB each of input and output of tenants.
inline constexpr std::uint64_t kMaxWorkerGrowthBytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kMaxBrokerGrowthBytes = std::uint64_t{128} << 20;

/// Everything that does not depend on the speed of the machine.
std::vector<demo::Check> judge_hostile(const HostileRecord& record);

}  // namespace leasehold::soak
