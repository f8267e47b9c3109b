/// The compiled kernels, as bytes inside this program.
///
/// A build without nvcc has stub images without code. A real driver rejects it, which becomes
/// DeviceUnsupported; the tests' fake driver runs its own kernels and accepts it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace leasehold::cuda {

struct KernelImage {
  std::string_view name;  ///< Used in messages, for example "attention".
  std::span<const std::byte> bytes;
  bool is_optional = false;  ///< The backend works without it.
};

/// The image of lh_conditional_gate. Optional: it needs a driver with conditional nodes.
inline constexpr std::string_view kConditionalGateImage = "conditional_gate";

std::span<const KernelImage> kernel_images();

/// False if the build had no nvcc and the image is a stub.
bool has_kernel_code();

}  // namespace leasehold::cuda
