/// One launch as a value: what to run, how wide, with which parameters.
///
/// Whoever plans an operator makes these; the launcher alone runs them, on a stream or as a node of
/// a graph. So the same plan serves both, and can be looked at by a test.
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
  static constexpr std::size_t kMaxBytes = 256;

  template <class Params>
    requires(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kMaxBytes)
  explicit KernelParams(const Params& params) {
    std::memcpy(bytes_.data(), &params, sizeof params);
  }
  /// For cuLaunchKernel, which copies from there.
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }

 private:
  alignas(16) std::array<std::byte, kMaxBytes> bytes_{};
};

struct KernelLaunch {
  const char* kernel;  ///< Its name in the image, a literal.
  GridSize grid;
  std::uint32_t block_threads;
  std::uint32_t shared_bytes = 0;  ///< Dynamic.
  KernelParams params;
};

}  // namespace leasehold::cuda
