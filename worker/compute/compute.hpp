/// The backend of a worker, on the device whose memory its broker lends.
///
/// A broker lends host memory or the memory of a GPU. `--device auto` takes either; `cpu` and
/// `cuda:N` accept only that device. A GPU is identified by its UUID, because ordinals differ
/// between processes (CUDA_VISIBLE_DEVICES).
#pragma once

#include <memory>
#include <string>

#include "ipc/region/region_mapper.hpp"
#include "kernels/backend.hpp"
#include "kernels/model/weights_plan.hpp"
#include "worker/compute/compute_nodes.hpp"
#include "worker/engine/worker_gates.hpp"
#include "worker/lease/attachment.hpp"
#include "worker/model/weights_placement.hpp"
#include "worker/options.hpp"

namespace leasehold {

/// Lifetime: outlives every mapping of its mappers. Threads: constructed on the engine's thread;
/// any thread may use the mappers.
struct Compute {
  /// The CUDA context of a GPU, used by the mappers and the backend.
  std::shared_ptr<void> context;
  std::shared_ptr<const RegionMapper> mapper;  ///< Maps KV memory.
  /// Maps the first KV memory of a tenant's lease without pages, as it may stay idle. Null on a
  /// card, and where the kernel may refuse a page (kernel_limits_pages): then `mapper` maps it too,
  /// so that the grant is refused instead.
  std::shared_ptr<const RegionMapper> first_mapper;
  std::shared_ptr<const RegionMapper> weights_mapper;
  std::shared_ptr<const RegionMapper> swap_mapper;  ///< Maps swap memory.
  std::unique_ptr<Backend> backend;
  CpuSet engine_cpus;           ///< Cores of the thread that runs the engine; empty: any.
  PlaceWeights weights_placer;  ///< Empty with one NUMA node.
  /// For logs: `cpu-avx512 threads=3`, `cpu-avx512 threads=63 nodes=2`,
  /// `cuda-sm90 card="NVIDIA H200"`.
  std::string description;
};

/// What the model and the engine require of a backend.
struct ComputeRequirements {
  Arithmetic arithmetic = Arithmetic::F32;  ///< The arithmetic of the model.
  BackendLimits limits;
  GateDependencies gates;
};

/// Creates the backend on the device whose memory the broker lends; the calling thread becomes its
/// thread 0.
/// Errors: BadRequest when the broker lends memory of a device that `options` exclude; those of
/// CpuBackend::create with `--backend cpu`; NoDevice, DeviceUnsupported, OutOfMemory of a GPU.
Result<Compute> make_compute(const WorkerOptions& options, const Attachment& lent,
                             const ComputeRequirements& required, NodeCalls calls = {});

/// Creates the backend on the lent GPU. A build without CUDA has no definition of it.
Result<Compute> make_cuda_compute(const WorkerOptions& options, Arithmetic arithmetic,
                                  const Attachment& lent, const BackendLimits& limits,
                                  const GateDependencies& dependencies);

/// Checks, before anything is loaded, that this process may lock the weights of the model and of
/// its draft model, which may be null. Errors: those of locked_mapper.
Result<void> check_lockable(const WeightsPlan& model, const WeightsPlan* draft);

/// Keeps the calling thread, and those it starts, off these cores, unless there are no others.
/// Precondition: `cpus.is_usable()`. Errors: SystemError.
Result<void> exclude_compute_cpus(const CpuSet& cpus);

}  // namespace leasehold
