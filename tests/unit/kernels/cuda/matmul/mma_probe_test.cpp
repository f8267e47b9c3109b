/// Tests the probe that compares the additions of wgmma and mma.sync, on the emulated card.
#include <algorithm>
#include <catch2/catch.hpp>

#include "kernels/cuda/plan/mma_probe.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

namespace leasehold::testing {
namespace {

std::vector<std::uint32_t> ask(const cuda::MmaProbeInput& input) {
  const device::GateMirror mirror{.live = 1, .engine_stopped = 0, .epoch = 0};
  const device::DeviceStep step{.n_rows = 0, .n_sequences = 0, .n_logit_rows = 0, .longest = 0};
  DeviceArray<std::uint16_t> a(input.a);
  DeviceArray<std::uint16_t> b(input.b);
  DeviceArray<std::uint32_t> results(std::vector<std::uint32_t>{0, 0});
  const auto result =
      simt::run(cuda::plan_mma_probe({.gate = {.mirror = &mirror, .step = &step, .rows = nullptr},
                                      .a = a.data(),
                                      .b = b.data(),
                                      .results = results.data(),
                                      .steps = input.steps},
                                     input.n_products));
  if (!result) FAIL(result.error().detail);
  return results.values();
}

}  // namespace

TEST_CASE("mma probe: on a card where both add alike every sum agrees") {
  const auto input = cuda::make_mma_probe_input();
  const auto results = ask(input);
  REQUIRE(cuda::wgmma_adds_as_mma(input, std::span<const std::uint32_t, 2>(results)));
}

TEST_CASE("mma probe: one different sum, or no comparison at all, means false") {
  const auto input = cuda::make_mma_probe_input();
  const std::uint32_t all = input.n_products * 64 * 128;
  const std::uint32_t one_differs[2] = {all, 1};
  const std::uint32_t none_compared[2] = {0, 0};
  const std::uint32_t equal[2] = {all, 0};
  REQUIRE(!cuda::wgmma_adds_as_mma(input, one_differs));
  REQUIRE(!cuda::wgmma_adds_as_mma(input, none_compared));
  REQUIRE(cuda::wgmma_adds_as_mma(input, equal));
}

TEST_CASE("mma probe: factors are small enough that every sum is finite") {
  const auto input = cuda::make_mma_probe_input();
  const auto is_finite = [](std::uint16_t half) { return (half & 0x7c00) != 0x7c00; };
  REQUIRE(std::ranges::all_of(input.a, is_finite));
  REQUIRE(std::ranges::all_of(input.b, is_finite));
}

}  // namespace leasehold::testing
