/// How a worker's time is shared by tenants that always have work.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct SharesLoad {
  std::string bin_dir;
  std::string model_path;
  std::uint64_t tokens = 20'000;  ///< The fewest tokens that are computed in the measured time.
};

/// {"served": […], "jain_index", "widest_ratio"}: the tokens that `tenant.list` counts, divided by
/// weight, of four tenants with the weights 1, 1, 2 and 4 and with prompts of different lengths.
/// Errors: those of System::start, BrokerView and TenantPool; TimedOut.
Result<nlohmann::json> measure_served_shares(const SharesLoad& load);

}  // namespace leasehold::bench
