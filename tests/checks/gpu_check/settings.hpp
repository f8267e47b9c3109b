/// Command-line settings of leasehold-gpu-check.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::gpu_check {

struct Settings {
  std::string bin_dir;    ///< Directory of the programs and the test programs.
  std::string model_dir;  ///< Models with their oracle files (NAME.json).
  std::string out_dir;    ///< For the report and the logs of the stages.
  std::string only;       ///< Comma-separated stages; empty: all.
  double minutes = 9;
  int ordinal = 0;    ///< Index of the GPU.
  bool tiny = false;  ///< Shapes for a driver that computes on the CPU.
};

}  // namespace leasehold::gpu_check
