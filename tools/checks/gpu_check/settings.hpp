/// What leasehold-gpu-check was asked to do.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::gpu_check {

struct Settings {
  std::string bin_dir;    ///< Broker, worker, tenant and the test programs.
  std::string model_dir;  ///< Models with what an oracle says of them beside (NAME.json).
  std::string out_dir;    ///< Of the report and of what stages leave.
  std::string only;       ///< Names of stages, with commas between; empty: all.
  double minutes = 9;
  int ordinal = 0;    ///< Of the card.
  bool tiny = false;  ///< Shapes for a driver that computes on the CPU.
};

}  // namespace leasehold::gpu_check
