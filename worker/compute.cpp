#include "worker/compute.hpp"

#include <spdlog/spdlog.h>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/reference/reference_backend.hpp"

namespace leasehold {

Result<std::unique_ptr<Backend>> make_backend(const WorkerOptions& options,
                                              const BackendLimits& limits,
                                              const GateWiring& wiring) {
  const OnCpus here(options.compute_cpus);  // as the threads it starts
  if (options.backend != BackendChoice::Reference) {
    auto cpu = CpuBackend::create(limits, make_gates(wiring, 0, options.threads),
                                  options.simd.value_or(best_simd_path()));
    if (cpu) return std::unique_ptr<Backend>(std::move(*cpu));
    if (options.backend == BackendChoice::Cpu) return std::unexpected(cpu.error());
    spdlog::warn("falling back to the reference backend reason=\"{}\"", cpu.error().detail);
  }
  return std::make_unique<ReferenceBackend>(limits, make_gates(wiring, 0, 1).front());
}

/// This thread, and those it starts, leave these cores alone unless there are no others.
Result<void> keep_off_compute_cpus(const CpuSet& cpus) {
  if (cpus.empty()) return {};
  const CpuSet all = CpuSet::of_this_thread();
  TRY(cpus.confine_this_thread());  // whether they are there
  const CpuSet others = all.without(cpus);
  return (others.empty() ? all : others).confine_this_thread();
}

}  // namespace leasehold
