/// Queries and probes of the card before the first step.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "kernels/cuda/cuda_backend.hpp"
#include "kernels/cuda/plan/mma_probe.hpp"

namespace leasehold::cuda {
namespace {

Result<std::uint32_t> attribute(const Context& context, CUdevice_attribute which) {
  int value = 0;
  TRY(check(context.driver(),
            context.driver().cuDeviceGetAttribute(&value, which, context.device()),
            "reading the card's properties"));
  return static_cast<std::uint32_t>(value);
}

}  // namespace

Result<void> CudaBackend::probe_device() {
  device_properties_.n_sms = TRY(attribute(*context_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  device_properties_.max_shared_bytes =
      TRY(attribute(*context_, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  const std::uint32_t major =
      TRY(attribute(*context_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  const std::uint32_t minor =
      TRY(attribute(*context_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  name_ = fmt::format("cuda-sm{}{}", major, minor);
  // The wgmma code runs on this architecture only.
  device_properties_.has_wgmma = major == 9 && minor == 0 && TRY(probe_wgmma());
  return {};
}

Result<bool> CudaBackend::probe_wgmma() {
  const MmaProbeInput input = make_mma_probe_input();
  const std::size_t a_bytes = input.a.size() * sizeof(std::uint16_t);
  const std::size_t b_bytes = input.b.size() * sizeof(std::uint16_t);
  std::array<std::uint32_t, 2> results{};
  const DeviceBuffer on_card =
      TRY(DeviceBuffer::allocate(*context_, a_bytes + b_bytes + sizeof results));
  const PinnedBuffer here = TRY(PinnedBuffer::allocate(*context_, on_card.size_bytes()));
  std::memcpy(here.data(), input.a.data(), a_bytes);
  std::memcpy(here.data() + a_bytes, input.b.data(), b_bytes);
  std::memset(here.data() + a_bytes + b_bytes, 0, sizeof results);
  std::byte* const device_results = on_card.data() + a_bytes + b_bytes;
  KernelLaunch launch =
      plan_mma_probe({.gate = step_memory_.gate(launcher_->mirror()),
                      .a = reinterpret_cast<const std::uint16_t*>(on_card.data()),
                      .b = reinterpret_cast<const std::uint16_t*>(on_card.data() + a_bytes),
                      .results = reinterpret_cast<std::uint32_t*>(device_results),
                      .steps = input.steps},
                     input.n_products);
  launcher_->enqueue_internal("probing wgmma", [&] {
    const CUresult copied =
        launcher_->copy_to_device(on_card.data(), here.data(), here.size_bytes());
    return copied != CUDA_SUCCESS ? copied : launcher_->enqueue(launch);
  });
  launcher_->enqueue_internal("reading the wgmma probe", [&] {
    return launcher_->copy_to_host(here.data(), device_results, sizeof results);
  });
  launcher_->wait_all();
  if (launcher_->fault()) return std::unexpected(*launcher_->fault());
  std::memcpy(results.data(), here.data(), sizeof results);
  return wgmma_adds_as_mma(input, results);
}

}  // namespace leasehold::cuda
