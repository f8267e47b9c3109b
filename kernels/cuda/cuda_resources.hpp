/// What the operators of a CUDA backend share. Every part is zeroed when it is created.
///
/// Lifetime: the context outlives it. Threads: the engine's.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/device_probe.hpp"
#include "kernels/cuda/prepared_array.hpp"
#include "kernels/cuda/step_runner.hpp"

namespace leasehold::cuda {

/// Memory through which the blocks of a launch share their results.
class BlockScratch {
 public:
  static Result<BlockScratch> create(Launcher& launcher, const DeviceProperties& card,
                                     std::uint32_t max_logit_rows);

  /// Sums of split matmuls, or data that the blocks of a row share.
  float* partials() const { return reinterpret_cast<float*>(partials_.data()); }
  /// [counter_count], zero between launches.
  std::uint32_t* counters() const { return reinterpret_cast<std::uint32_t*>(counters_.data()); }
  /// [max_logit_rows], zero between launches.
  std::uint32_t* logit_counters() const { return counters() + n_counters_; }
  RowParts row_parts() const {
    return {.largest = reinterpret_cast<std::uint32_t*>(partials_.data()),
            .counters = counters(),
            .max_blocks = n_counters_};
  }
  void clear(Launcher& launcher) const { launcher.zero(partials_); }
  /// Blocks that finished before the mirror stopped a launch have advanced its counters.
  void reset_counters(Launcher& launcher) const { launcher.zero(counters_); }

 private:
  explicit BlockScratch(std::uint32_t n_counters) : n_counters_(n_counters) {}

  std::uint32_t n_counters_;
  DeviceBuffer partials_;
  DeviceBuffer counters_;
};

struct CudaResources {
  BackendLimits limits;
  RowArithmetic rows;
  DeviceProperties card;
  std::unique_ptr<StepRunner> runner;
  PreparedArray prepared;
  BlockScratch blocks;

  Launcher& launcher() const { return runner->launcher(); }
  const StepMemory& step() const { return runner->step(); }
};

}  // namespace leasehold::cuda
