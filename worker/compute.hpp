/// Where a worker computes: in the memory its broker lends, on the device that memory is of.
///
/// A broker lends the machine's memory, or a card's. `--device` says which of them a worker takes:
/// auto takes what there is, cpu and cuda:N insist. A card is told by its UUID, for numbers differ
/// from process to process (CUDA_VISIBLE_DEVICES).
#pragma once

#include <memory>
#include <string>

#include "ipc/region/region_mapper.hpp"
#include "kernels/backend.hpp"
#include "worker/engine/worker_gates.hpp"
#include "worker/options.hpp"

namespace leasehold {

/// What the broker says it lends (wire::WorkerAttached).
struct LentDevice {
  std::string name = "cpu";  ///< "cpu", "cuda:0" …
  std::string uuid;          ///< Of the card.
};

/// Lifetime: outlives whatever was mapped by its mapper. Threads: made on the thread that will be
/// the engine's; the mapper any.
class Compute {
 public:
  virtual ~Compute() = default;
  virtual Backend& backend() = 0;
  virtual const RegionMapper& mapper() const = 0;
  virtual std::string description() const = 0;  ///< "cpu-avx512 threads=3", "cuda-sm90 NVIDIA H200"
};

/// This thread becomes thread 0 of the backend.
/// Errors: BadRequest when the broker lends other memory than was asked for; those of
/// CpuBackend::create, when the reference backend was not to be taken instead; NoDevice,
/// DeviceUnsupported, OutOfMemory of a card.
Result<std::unique_ptr<Compute>> make_compute(const WorkerOptions& options, const LentDevice& lent,
                                              const BackendLimits& limits,
                                              const GateDependencies& dependencies);

/// On the card that is lent; of a build without CUDA always DeviceUnsupported.
Result<std::unique_ptr<Compute>> make_cuda_compute(const WorkerOptions& options,
                                                   const LentDevice& lent,
                                                   const BackendLimits& limits,
                                                   const GateDependencies& dependencies);

/// This thread, and those it starts, leave these cores alone unless there are no others.
/// Errors: SystemError when these are not there, or not open to this process.
Result<void> exclude_compute_cpus(const CpuSet& cpus);

}  // namespace leasehold
