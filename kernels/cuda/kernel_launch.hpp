/// One launch as a value: kernel, grid and parameters.
///
/// Plans produce launches; only the launcher runs them, on a stream or as a node of a graph. The
/// same plan serves both, and tests can inspect it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "common/expects.hpp"

namespace leasehold::cuda {

struct GridSize {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  bool operator==(const GridSize&) const = default;
};

/// A kernel's one parameter block, by value.
class KernelParams {
 public:
  static constexpr std::size_t kMaxBytes = 512;

  template <class Params>
    requires(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kMaxBytes)
  explicit KernelParams(const Params& params) {
    std::memcpy(bytes_.data(), &params, sizeof params);
  }
  /// For cuLaunchKernel, which copies the parameters from here.
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }

 private:
  alignas(16) std::array<std::byte, kMaxBytes> bytes_{};
};

struct KernelLaunch {
  const char* kernel;  ///< The kernel's name in the image; lives as long as the program.
  GridSize grid;
  std::uint32_t block_threads;
  std::uint32_t shared_bytes = 0;  ///< Dynamic shared memory.
  KernelParams params;
};

}  // namespace leasehold::cuda
