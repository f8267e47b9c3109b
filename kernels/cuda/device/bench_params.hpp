/// Parameters of the benchmark kernels of tests/checks/gpu_check: fill memory, write one word once
/// or for seconds, poll a gate, and multiply at full rate. C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"

namespace leasehold::device {

/// Fills memory with random words: `keep` masks the random bits, `set` the bits that are always 1.
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

/// Each block writes rising numbers into a separate word for some seconds, so that the process can
/// be killed meanwhile.
struct KeepWritingParams {
  KernelGate gate;
  std::uint32_t* at;  ///< [blocks, words_apart]
  std::uint32_t words_apart;
  std::uint32_t n_writes;
};

/// Polls the gate a given number of times; each poll waits for the previous one.
struct GatePollsParams {
  KernelGate gate;
  std::uint32_t* n_polled_open;  ///< Receives the number of polls that found the gate open.
  std::uint32_t n_polls;
};

/// Each block repeats the product of [64 × 16] and [16 × 128].
struct MmaRateParams {
  static constexpr std::uint32_t kColumns = 128;
  static constexpr std::uint32_t kTimesEach = 16;  ///< Products per round.

  KernelGate gate;
  float* sums;  ///< [blocks, 128]; storing them keeps the compiler from dropping the products
  std::uint32_t rounds;
};

}  // namespace leasehold::device
