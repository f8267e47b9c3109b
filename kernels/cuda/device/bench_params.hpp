/// What tools/checks/gpu_check asks a card to do beside computing a model: make up bytes, write
/// one word, look at a gate, and multiply as fast as it can. C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"

namespace leasehold::device {

/// Words of chance, of which `keep` says the bits that stay so and `set` those that are 1.
struct FillParams {
  KernelGate gate;
  std::uint64_t* to;
  std::uint64_t n_words;
  std::uint64_t keep;
  std::uint64_t set;
  std::uint64_t seed;
};

struct PokeParams {
  KernelGate gate;
  std::uint32_t* at;
  std::uint32_t value;
};

/// Looks at the gate so many times, each waited for.
struct GatePollsParams {
  KernelGate gate;
  std::uint32_t* n_polled_open;
  std::uint32_t n_polls;
};

/// A block of this kernel multiplies [64 × 16] by [16 × 128] so many times.
struct MmaRateParams {
  static constexpr std::uint32_t kColumns = 128;
  static constexpr std::uint32_t kTimesEach = 16;  ///< Products of one round.

  KernelGate gate;
  float* sums;  ///< [blocks, 128], so that nothing is left out as unused
  std::uint32_t rounds;
};

}  // namespace leasehold::device
