/// Where a worker computes: the backend, its threads and their cores, as the command line says.
#pragma once

#include <memory>

#include "kernels/backend.hpp"
#include "worker/engine/worker_gates.hpp"
#include "worker/options.hpp"

namespace leasehold {

/// This thread becomes thread 0 of the backend.
/// Errors: those of CpuBackend::create, when the reference backend was not to be taken instead.
Result<std::unique_ptr<Backend>> make_backend(const WorkerOptions& options,
                                              const BackendLimits& limits,
                                              const GateWiring& wiring);

/// This thread, and those it starts, leave these cores alone unless there are no others.
/// Errors: SystemError when these are not there, or not open to this process.
Result<void> keep_off_compute_cpus(const CpuSet& cpus);

}  // namespace leasehold
