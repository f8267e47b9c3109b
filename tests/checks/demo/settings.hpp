/// Command-line settings of the demo.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::demo {

struct Settings {
  std::string bin_dir;  ///< Directory of leasehold-broker, -worker, -tenant and brokerctl.
  std::string model_path;
  std::string device;   ///< The broker's --device; empty: its default.
  std::string out_dir;  ///< For the reports; empty: none are written.
  bool chat = false;    ///< Questions through the model's chat template.
  bool plain = false;   ///< Lines instead of columns.
  std::uint32_t max_tokens = 160;
  std::uint32_t slow_motion_us = 0;
};

}  // namespace leasehold::demo
