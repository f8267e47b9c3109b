#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "kernels/cuda/plan/row_plan.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {

TEST_CASE("cuda: swiglu has the reference's bits, alone and with tiles") {
  SeededRandom random(test_seed());
  for (const std::uint32_t width : {1u, 96u, 700u, 1536u}) {
    CAPTURE(width, test_seed());
    DeviceStep step(rows_of({3}, {3}), 1, 1);
    const auto gate = random_floats(random, 3 * width, 20.0F);
    const auto up = random_floats(random, 3 * width, 2.0F);
    auto expected = gate;
    step.reference().swiglu(step.context(), {expected.data(), up.data(), width});
    auto out = gate;
    step.run(cuda::plan_swiglu(step.plan(), {out.data(), up.data(), width}));
    REQUIRE(first_difference(out, expected) == -1);
    TileMemory tiles(8, width);
    out = gate;
    step.run(
        cuda::plan_swiglu(step.plan(), {out.data(), up.data(), width}, {.tiles = tiles.view()}), 5);
    REQUIRE(first_difference(out, expected) == -1);
    for (std::uint32_t i = 0; i < width; ++i) {
      const float value = expected[2 * width + i];
      REQUIRE(std::fabs(tiles.at(2, i) - value) <= 0x1p-11F * std::fabs(value) + 1e-7F);
    }
    REQUIRE(is_poison(tiles.scales[3]));  // the step has three rows
  }
}

TEST_CASE("cuda: a row whose swiglu has several blocks gets the tiles of one block") {
  SeededRandom random(test_seed());
  constexpr std::uint32_t kRows = 3, kSpare = 1;
  for (const std::uint32_t width : {600u, 1537u, 2600u}) {
    DeviceStep step(rows_of({kRows}, {kRows}), 1, kSpare);
    auto gate = random_floats(random, kRows * width, 20.0F);
    const auto up = random_floats(random, kRows * width, 2.0F);
    gate[width - 1] =
        500.0F;  // The last block of row 0 and the first one of row 1 are the largest.
    gate[width] = 700.0F;
    TileMemory one(8, width), several(8, width);
    auto expected = gate;
    step.run(
        cuda::plan_swiglu(step.plan(), {expected.data(), up.data(), width}, {.tiles = one.view()}));
    for (const std::uint32_t max_blocks : {2 * (kRows + kSpare), 1000u})
      for (const std::uint64_t seed : {0, 1, 2, 3}) {
        CAPTURE(width, max_blocks, seed, test_seed());
        std::vector<std::uint32_t> largest(max_blocks, 7), counters(kRows + kSpare, 0);
        auto out = gate;
        const auto launch = cuda::plan_swiglu(step.plan(), {out.data(), up.data(), width},
                                              {.tiles = several.view()},
                                              {largest.data(), counters.data(), max_blocks});
        REQUIRE(launch.grid.x == std::min(max_blocks / (kRows + kSpare), (width + 511) / 512));
        step.run(launch, seed);
        REQUIRE(first_difference(out, expected) == -1);
        REQUIRE(several.halves == one.halves);
        for (std::uint32_t row = 0; row < kRows; ++row)
          REQUIRE(several.scales[row] == one.scales[row]);
        REQUIRE(counters == std::vector<std::uint32_t>(kRows + kSpare, 0));
      }
  }
}

TEST_CASE("cuda: experts and their weights are the reference's, including ties and NaN") {
  SeededRandom random(test_seed());
  const auto gating = GENERATE(ExpertGating::Softmax, ExpertGating::Sigmoid);
  const bool has_bias = GENERATE(false, true);
  const std::uint32_t n_groups = GENERATE(1u, 4u, 20u);
  for (const std::uint32_t n_experts : {1u, 8u, 60u, 128u})
    for (const std::uint32_t n_used : {1u, 4u, 40u})
      for (const bool sum_to_1 : {false, true}) {
        const std::uint32_t n_groups_used = n_groups == 1 ? 1 : n_groups * 3 / 4;
        if (n_experts % n_groups != 0 || n_used > n_experts / n_groups * n_groups_used) continue;
        CAPTURE(gating, has_bias, n_experts, n_used, n_groups, sum_to_1, test_seed());
        DeviceStep step(rows_of({4}, {4}), 1, 1);
        auto scores = random_floats(random, 4 * n_experts, 4.0F);
        for (std::uint32_t e = 0; e < n_experts; ++e) scores[e] = 1.5F;
        scores[n_experts + n_experts / 2] = std::numeric_limits<float>::quiet_NaN();
        scores[2 * n_experts] = std::numeric_limits<float>::infinity();
        const LeasedMemory bias(n_experts * sizeof(float));
        const auto* opened_bias = reinterpret_cast<float*>(bias.bytes());
        std::ranges::copy(random_floats(random, n_experts), reinterpret_cast<float*>(bias.bytes()));
        ExpertRoutingArgs args{.scores = scores.data(),
                               .n_experts = n_experts,
                               .n_used = n_used,
                               .normalize_expert_weights = sum_to_1,
                               .gating = gating,
                               .scale = 1.5F,
                               .n_groups = n_groups,
                               .n_groups_used = n_groups_used};
        if (has_bias) args.selection_bias = bias.at().as<const float>();
        std::vector<std::uint32_t> expected_chosen(4 * n_used);
        std::vector<float> expected(4 * n_used);
        args.chosen = expected_chosen.data();
        args.weights = expected.data();
        step.reference().expert_routing(step.context(), args);
        std::vector<std::uint32_t> chosen(5 * n_used, 7777);
        auto weights = poisoned(5 * n_used);
        args.chosen = chosen.data();
        args.weights = weights.data();
        step.run(cuda::plan_expert_routing(step.plan(), args,
                                           {.bias = has_bias ? opened_bias : nullptr}),
                 2);
        REQUIRE(chosen[4 * n_used] == 7777);
        REQUIRE(is_poison(weights[4 * n_used]));
        chosen.resize(4 * n_used);
        REQUIRE(chosen == expected_chosen);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const bool both_nan = std::isnan(weights[i]) && std::isnan(expected[i]);
          REQUIRE((both_nan || weights[i] == expected[i]));
        }
      }
}

TEST_CASE("cuda: weighted sums have the reference's bits, plain and gated") {
  SeededRandom random(test_seed());
  for (const std::uint32_t n_terms : {1u, 8u})
    for (const bool applies_sigmoid : {false, true}) {
      CAPTURE(n_terms, applies_sigmoid, test_seed());
      DeviceStep step(rows_of({3}, {3}), 1, 1);
      const auto x = random_floats(random, 3 * n_terms * 300);
      const auto weights = random_floats(random, 3 * n_terms, 5.0F);
      auto expected = random_floats(random, 3 * 300);
      auto out = expected;
      step.reference().weighted_sum(step.context(), {x.data(), weights.data(), expected.data(),
                                                     n_terms, 300, applies_sigmoid});
      step.run(cuda::plan_weighted_sum(
          step.plan(), {x.data(), weights.data(), out.data(), n_terms, 300, applies_sigmoid}));
      REQUIRE(first_difference(out, expected) == -1);
    }
}

}  // namespace leasehold::testing
