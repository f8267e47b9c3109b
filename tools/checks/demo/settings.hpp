/// What the demo was asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::demo {

struct Settings {
  std::string bin_dir;  ///< Where leasehold-broker, -worker, -tenant and brokerctl are.
  std::string model_path;
  std::string device;  ///< Whose memory the broker lends, as it calls it; empty: as it chooses.
  std::optional<std::string> report_path;
  bool plain = false;  ///< Lines, not columns.
  std::uint32_t max_tokens = 160;
  std::uint32_t slow_motion_us = 0;
};

}  // namespace leasehold::demo
