/// Command-line settings of `leasehold-soak --hostile`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::soak {

inline constexpr const char* kHostileWorker = "w0";  ///< The only worker of a hostile run.

struct HostileSettings {
  std::string bin_dir;  ///< Directory of leasehold-broker, -worker, -tenant and -attacker.
  std::string model_path;
  std::uint64_t seed = 1;
  std::uint32_t seconds = 60;         ///< Of attack, in all windows together.
  std::uint32_t window_seconds = 10;  ///< Longest window of attack.
  std::uint32_t honest = 8;           ///< Tenants whose texts are compared.
  std::uint32_t tenants = 8;          ///< Tenants that attack.
  std::uint32_t strangers = 2;        ///< Attackers without a lease.
  std::uint32_t max_tokens = 400;     ///< Of an honest text.
  std::uint32_t slow_motion_us = 10;
  std::vector<std::string> without;  ///< Attacks that are left out.
};

}  // namespace leasehold::soak
