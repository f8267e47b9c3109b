/// The AMX path of the CPU backend on emulated tiles.
#include "kernels/cpu/cpu_backend.hpp"
#include "tests/contract/backend/matmul_cases.hpp"
#include "tests/support/emulated_tiles.hpp"
#include "tests/support/trapped_tiles.hpp"

namespace leasehold::testing {

TEST_CASE("simd: units with tiles have the reference's bits and leave no tile configured") {
  if (!can_emulate_tiles() || cpu_has(SimdPath::Amx)) {
    WARN("not run: needs a CPU with AVX-512 and VNNI that traps AMX instructions");
    return;
  }
  SeededRandom random(test_seed());
  CAPTURE(test_seed());
  const GroupedMatrix weight(random, TensorType::Q4_K, 40, 512);
  const std::vector<float> x = random_floats(random, std::size_t{30} * 512);
  Rig reference(0);
  Rig amx(0);
  amx.backend = required(
      CpuBackend::create(kLimits, amx.table.gates(2), row_kernels(SimdPath::Amx), "cpu-amx"));
  const TrappedTiles handler;
  const std::uint64_t before = trapped_instructions();
  CHECK(first_difference(product(amx, weight.view(), x), product(reference, weight.view(), x)) ==
        -1);
  CHECK(trapped_instructions() > before);
  CHECK(EmulatedTiles::configured_threads == 0);
}

}  // namespace leasehold::testing
