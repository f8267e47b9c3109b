/// The input whether a card's wgmma adds as its mma.sync does (ops/mma_probe.cu): what to ask it
/// with, the launch, and how to read the answer. Pure.
///
/// Factors are of the magnitudes that matmuls meet: weights around 2^-6, x up to 2^15, both with
/// exponents spread so far that sums mark_lost bits in every addition. Where no launch compared
/// anything the answer is no.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/device/matmul_params.hpp"
#include "kernels/cuda/kernel_launch.hpp"

namespace leasehold::cuda {

struct MmaProbeInput {
  std::uint32_t n_products;
  std::uint32_t steps;
  std::vector<std::uint16_t> a;  ///< [n_products][64][16 · steps]
  std::vector<std::uint16_t> b;  ///< [n_products][128][16 · steps]
};

MmaProbeInput make_mma_probe_input();

/// Where input and results lie on the device.
struct MmaProbeBuffers {
  device::KernelGate gate;
  const std::uint16_t* a;
  const std::uint16_t* b;
  std::uint32_t* results;  ///< [2], zero
};

KernelLaunch plan_mma_probe(const MmaProbeInput& input, const MmaProbeBuffers& buffers);

/// Of the two numbers that the launch left: has the card wgmma, and do all sums agree?
bool wgmma_adds_as_mma(const MmaProbeInput& input, std::span<const std::uint32_t, 2> results);

}  // namespace leasehold::cuda
