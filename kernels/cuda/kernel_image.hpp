/// The compiled kernels, as bytes inside this program.
///
/// A build without nvcc has one image that holds no code: a card's driver refuses it, which becomes
/// DeviceUnsupported; the tests' driver runs kernels of its own and takes it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace leasehold::cuda {

struct KernelImage {
  std::string_view name;  ///< For people: "attention".
  std::span<const std::byte> bytes;
};

std::span<const KernelImage> kernel_images();

/// False when the kernels are in no image, because nvcc was not there.
bool has_kernel_code();

}  // namespace leasehold::cuda
