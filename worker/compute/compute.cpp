#include "worker/compute/compute.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <vector>

#include "common/machine/available_memory.hpp"
#include "ipc/region/locked_mapper.hpp"
#include "ipc/region/on_use_mapper.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/reference/reference_backend.hpp"

namespace leasehold {
namespace {

/// Returns the path of --simd, or the best path.
SimdPath simd_path(const WorkerOptions& options) {
  if (options.simd) return *options.simd;
  const SimdPath best = best_simd_path();
  for (const SimdPath path : kSimdPaths)
    if (cpu_has(path) && !passes_self_check(path))
      spdlog::warn(
          "products by {} differ from the plain ones on this CPU, so it is not used simd={}",
          name(path), name(best));
  return best;
}

struct HostCompute {
  std::unique_ptr<Backend> backend;
  ComputeNodes nodes;  // nodes that the backend uses
};

Result<HostCompute> make_host_backend(const WorkerOptions& options, const BackendLimits& limits,
                                      const GateDependencies& dependencies, ComputeNodes nodes) {
  const ScopedCpuAffinity here(options.compute_cpus);  // inherited by the backend's threads
  if (options.backend != BackendChoice::Reference) {
    auto cpu = CpuBackend::create(limits, make_gates(dependencies, 0, options.threads),
                                  simd_path(options), nodes.pool());
    if (cpu) return HostCompute{.backend = *std::move(cpu), .nodes = std::move(nodes)};
    const bool is_required = options.backend == BackendChoice::Cpu || options.simd.has_value();
    if (is_required) return std::unexpected(cpu.error());
    spdlog::warn("falling back to the reference backend reason=\"{}\"", cpu.error().detail);
  }
  return HostCompute{
      .backend = std::make_unique<ReferenceBackend>(limits, make_gates(dependencies, 0, 1).front()),
      .nodes = {}};
}

bool is_cuda_device(const std::string& device) {
  return device.starts_with("cuda:");
}

/// Refuses options that require a CPU. Errors: BadRequest.
Result<void> check_lent_card(const WorkerOptions& options, const Attachment& lent) {
  if (options.backend != BackendChoice::Auto) {
    return fail(
        Errc::BadRequest,
        fmt::format("--backend selects a CPU backend, but the broker lends memory of {}; omit "
                    "--backend",
                    lent.device));
  }
  if (options.mlock) {
    return fail(Errc::BadRequest,
                fmt::format("--mlock locks memory of this machine, but the broker lends memory of "
                            "{}, which is never swapped out; omit --mlock",
                            lent.device));
  }
  return {};
}

/// Errors: BadRequest when the lent device is not the requested one; those of check_lent_card.
Result<void> check_lent_device(const WorkerOptions& options, const Attachment& lent) {
  if (is_cuda_device(lent.device)) TRY(check_lent_card(options, lent));
  if (!is_cuda_device(lent.device) && options.arithmetic == Arithmetic::F16) {
    return fail(
        Errc::BadRequest,
        fmt::format("--arithmetic f16 needs a card, but the broker lends memory of {}; use int8 or "
                    "f32, or omit --arithmetic",
                    lent.device));
  }
  if (options.device == "auto" || is_cuda_device(options.device) == is_cuda_device(lent.device))
    return {};
  return fail(
      Errc::BadRequest,
      fmt::format("--device is {}, but the broker lends memory of {}; start the broker with "
                  "--device {}, or this worker with --device auto",
                  options.device, lent.device, options.device));
}

}  // namespace

Result<Compute> make_compute(const WorkerOptions& options, const Attachment& lent,
                             const ComputeRequirements& required, NodeCalls calls) {
  TRY(check_lent_device(options, lent));
  if (is_cuda_device(lent.device)) {
    if constexpr (LEASEHOLD_HAS_CUDA) {
      Compute compute = TRY(
          make_cuda_compute(options, required.arithmetic, lent, required.limits, required.gates));
      compute.engine_cpus = options.compute_cpus;
      return compute;
    }
    return fail(Errc::DeviceUnsupported,
                fmt::format("the broker lends memory of {}, but this worker was built without "
                            "CUDA; build it with the CUDA toolkit, or start the broker with "
                            "--device cpu",
                            lent.device));
  }
  auto [backend, nodes] = TRY(make_host_backend(options, required.limits, required.gates,
                                                nodes_for(options, std::move(calls))));
  std::string description = fmt::format("{} threads={}", backend->name(), options.threads);
  if (nodes.count() > 1) description += fmt::format(" nodes={}", nodes.count());
  // These shared pointers own nothing, because the mappers live as long as the program.
  const std::shared_ptr<void> nothing;
  std::shared_ptr<const RegionMapper> mapper(nothing, &host_mapper());
  std::shared_ptr<const RegionMapper> weights_mapper(
      nothing, options.mlock ? &locked_mapper() : &host_mapper());
  return Compute{.context = nullptr,
                 .mapper = mapper,
                 .first_mapper = {nothing, kernel_limits_pages() ? nullptr : &on_use_mapper()},
                 .weights_mapper = std::move(weights_mapper),
                 .swap_mapper = mapper,
                 .backend = std::move(backend),
                 .engine_cpus = nodes.count() > 1 ? nodes.engine_cpus() : options.compute_cpus,
                 .weights_placer = nodes.weights_placer(),
                 .description = std::move(description)};
}

Result<void> check_lockable(const WeightsPlan& model, const WeightsPlan* draft) {
  std::vector<std::uint64_t> sizes_bytes;
  for (const WeightsPlan* plan : {&model, draft}) {
    if (plan == nullptr) continue;
    for (const WeightsPart& part : plan->parts) sizes_bytes.push_back(part.layout.size_bytes);
  }
  return check_lockable(sizes_bytes);
}

Result<void> exclude_compute_cpus(const CpuSet& cpus) {
  if (cpus.empty()) return {};
  const CpuSet all = CpuSet::of_this_thread();
  TRY(cpus.pin_this_thread());
  const CpuSet others = all.without(cpus);
  return (others.empty() ? all : others).pin_this_thread();
}

}  // namespace leasehold
