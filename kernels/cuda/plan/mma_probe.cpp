#include "kernels/cuda/plan/mma_probe.hpp"

#include "common/random.hpp"

namespace leasehold::cuda {
namespace {

constexpr std::uint32_t kProducts = 64;
constexpr std::uint32_t kSteps = 16;
constexpr std::uint64_t kSeed = 20;

/// Halves with any fraction and sign, and exponents uniform in [lowest, lowest + spread).
std::vector<std::uint16_t> random_halves(SeededRandom& random, std::size_t n, int lowest,
                                         std::uint64_t spread) {
  std::vector<std::uint16_t> halves(n);
  for (std::uint16_t& half : halves) {
    const auto exponent = static_cast<std::uint64_t>(lowest + 15) + random.below(spread);
    half = static_cast<std::uint16_t>(random.below(2) << 15 | exponent << 10 | random.below(1024));
  }
  return halves;
}

}  // namespace

MmaProbeInput make_mma_probe_input() {
  SeededRandom random(kSeed);
  const std::size_t depth = std::size_t{16} * kSteps;
  return {.n_products = kProducts,
          .steps = kSteps,
          .a = random_halves(random, kProducts * device::kProbeRows * depth, -14, 15),
          .b = random_halves(random, kProducts * device::kProbeColumns * depth, -5, 20)};
}

KernelLaunch plan_mma_probe(const device::MmaProbeParams& params, std::uint32_t n_products) {
  return {.kernel = "lh_mma_probe",
          .grid = {.x = n_products},
          .block_threads = 128,
          .shared_bytes = device::kProbeColumns * 16 * params.steps * 2,
          .params = KernelParams(params)};
}

bool wgmma_adds_as_mma(const MmaProbeInput& input, std::span<const std::uint32_t, 2> results) {
  const std::uint32_t all = input.n_products * device::kProbeRows * device::kProbeColumns;
  return results[0] == all && results[1] == 0;
}

}  // namespace leasehold::cuda
