/// Checks whether a card's wgmma adds as its mma.sync does (ops/mma_probe.cu): the input of the
/// probe, its launch, and the evaluation of the result. Pure.
///
/// Factors have the magnitudes of real matmuls: weights around 2^-6, x up to 2^15. Both spread
/// their exponents so widely that every addition rounds. If the launch compared nothing, the result
/// is false.
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

KernelLaunch plan_mma_probe(const device::MmaProbeParams& params, std::uint32_t n_products);

/// Evaluates the two numbers of the launch: true if the card has wgmma and all sums agree.
bool wgmma_adds_as_mma(const MmaProbeInput& input, std::span<const std::uint32_t, 2> results);

}  // namespace leasehold::cuda
