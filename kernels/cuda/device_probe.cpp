#include "kernels/cuda/device_probe.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

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

Result<bool> probe_wgmma(const Context& context, Launcher& launcher,
                         const device::KernelGate& gate) {
  const MmaProbeInput input = make_mma_probe_input();
  const std::size_t a_bytes = input.a.size() * sizeof(std::uint16_t);
  const std::size_t b_bytes = input.b.size() * sizeof(std::uint16_t);
  std::array<std::uint32_t, 2> results{};
  const DeviceBuffer on_card =
      TRY(DeviceBuffer::allocate(context, a_bytes + b_bytes + sizeof results));
  const PinnedBuffer here = TRY(PinnedBuffer::allocate(context, on_card.size_bytes()));
  std::memcpy(here.data(), input.a.data(), a_bytes);
  std::memcpy(here.data() + a_bytes, input.b.data(), b_bytes);
  std::memset(here.data() + a_bytes + b_bytes, 0, sizeof results);
  std::byte* const device_results = on_card.data() + a_bytes + b_bytes;
  KernelLaunch launch =
      plan_mma_probe({.gate = gate,
                      .a = reinterpret_cast<const std::uint16_t*>(on_card.data()),
                      .b = reinterpret_cast<const std::uint16_t*>(on_card.data() + a_bytes),
                      .results = reinterpret_cast<std::uint32_t*>(device_results),
                      .steps = input.steps},
                     input.n_products);
  launcher.enqueue_internal("probing wgmma", [&] {
    const CUresult copied = launcher.copy_to_device(on_card.data(), here.data(), here.size_bytes());
    return copied != CUDA_SUCCESS ? copied : launcher.enqueue(launch);
  });
  launcher.enqueue_internal("reading the wgmma probe", [&] {
    return launcher.copy_to_host(here.data(), device_results, sizeof results);
  });
  launcher.wait_all();
  if (launcher.fault()) return std::unexpected(*launcher.fault());
  std::memcpy(results.data(), here.data(), sizeof results);
  return wgmma_adds_as_mma(input, results);
}

}  // namespace

Result<ProbedDevice> probe_device(const Context& context, Launcher& launcher,
                                  const device::KernelGate& gate) {
  ProbedDevice probed;
  DeviceProperties& card = probed.properties;
  card.n_sms = TRY(attribute(context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  card.max_shared_bytes =
      TRY(attribute(context, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  const auto major = TRY(attribute(context, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  const auto minor = TRY(attribute(context, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  probed.name = fmt::format("cuda-sm{}{}", major, minor);
  // The wgmma code runs on this architecture only.
  card.has_wgmma = major == 9 && minor == 0 && TRY(probe_wgmma(context, launcher, gate));
  return probed;
}

}  // namespace leasehold::cuda
