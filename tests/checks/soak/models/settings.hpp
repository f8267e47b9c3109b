/// Command-line settings of the soak with two models.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::soak {

struct ModelsSettings {
  std::string bin_dir;     ///< Directory of leasehold-broker, -worker and -tenant.
  std::string model_path;  ///< The first model; the second one is generated.
  std::uint64_t seed = 1;
  std::uint32_t seconds = 120;    ///< How long files, leases and readers are disturbed.
  std::uint32_t max_tokens = 80;  ///< Length of each text.
  std::uint32_t slow_motion_us = 20;
};

}  // namespace leasehold::soak
