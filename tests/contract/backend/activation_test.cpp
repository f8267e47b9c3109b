/// Gated activations, soft caps and norms that add to a residual: the formulas, with the same bits
/// everywhere.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {

TEST_CASE("backend: every gated activation is the formula, with the reference's bits") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const Activation activation = GENERATE(Activation::GeGlu, Activation::ClampedSwiGlu);
  SeededRandom random(test_seed() + 650);
  Rig rig(threads);
  Rig reference(0);
  for (const float reach : {0.01F, 1.0F, 12.0F, 300.0F}) {
    const auto rows = plain_rows(static_cast<std::uint32_t>(1 + random.below(20)));
    const auto width = static_cast<std::uint32_t>(1 + random.below(300));
    auto gate = random_floats(random, rows.size() * width, reach);
    const auto up = random_floats(random, rows.size() * width, reach);
    const auto on = [&](Rig& on_rig) {
      std::vector<float> out = gate;
      run_step(on_rig, rows, [&](Backend& backend, const LaunchContext& context) {
        return backend.swiglu(
            context,
            {.gate = out.data(), .up = up.data(), .width = width, .activation = activation});
      });
      return out;
    };
    const auto out = on(rig);
    CAPTURE(threads, static_cast<int>(activation), reach, width);
    REQUIRE(first_difference(out, on(reference)) == -1);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double g = activation == Activation::GeGlu ? gate[i] : std::min(gate[i], 7.0F);
      const double gelu =
          g / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g)));
      const double u = activation == Activation::GeGlu ? up[i] : std::clamp(up[i], -7.0F, 7.0F);
      const double expected =
          activation == Activation::GeGlu ? gelu * u : g / (1 + std::exp(-1.702 * g)) * (u + 1);
      REQUIRE(out[i] == Approx(expected).epsilon(2e-6).margin(1e-6));
    }
    gate[0] = NAN;
    REQUIRE(std::isnan(on(rig)[0]));
  }
}

TEST_CASE("backend: products are capped by their cap, and a norm adds to its output") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 660);
  Rig rig(threads);
  Rig reference(0);
  for (const std::uint32_t width : {5u, 40u, 333u}) {
    const auto rows = plain_rows(3);
    const Matrix weight(random, TensorType::F32, 70, width);
    const auto x = random_floats(random, rows.size() * width, 3.0F);
    const auto gain = random_floats(random, width);
    LeasedMemory gain_memory(width * sizeof(float));
    gain_memory.fill<float>(gain);
    const std::uint32_t select[] = {0, 2};
    const auto on = [&](Rig& on_rig) {
      std::vector<float> capped(2 * weight.n_out);
      std::vector<float> sum(x.size(), 0.5F);
      run_step(on_rig, rows, [&](Backend& backend, const LaunchContext& context) {
        const MatmulArgs matmul{.site = LaunchSite::LmHead,
                                .weight = weight.view(),
                                .x = x.data(),
                                .out = capped.data(),
                                .select = select};
        LaunchStatus status = backend.project(context, {.matmuls = {&matmul, 1}, .softcap = 4.0F});
        status &= backend.rms_norm(context, {.site = LaunchSite::FfnNorm,
                                             .x = x.data(),
                                             .weight = gain_memory.at().as<const float>(),
                                             .out = sum.data(),
                                             .width = width,
                                             .epsilon = 1e-6F,
                                             .accumulate = true});
        return status;
      });
      capped.insert(capped.end(), sum.begin(), sum.end());
      return capped;
    };
    const auto out = on(rig);
    CAPTURE(threads, width);
    REQUIRE(first_difference(out, on(reference)) == -1);
    for (std::uint32_t i = 0; i < 2 * weight.n_out; ++i) {
      double dot = 0;
      for (std::uint32_t k = 0; k < width; ++k)
        dot += weight.at(i % weight.n_out, k) * x[select[i / weight.n_out] * width + k];
      REQUIRE(out[i] == Approx(4 * std::tanh(dot / 4)).margin(2e-5));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      double squares = 0;
      for (std::uint32_t k = 0; k < width; ++k)
        squares += std::pow(double{x[i / width * width + k]}, 2);
      const double normed = x[i] / std::sqrt(squares / width + 1e-6) * gain[i % width];
      REQUIRE(out[2 * weight.n_out + i] == Approx(0.5 + normed).margin(4e-6));
    }
  }
}

}  // namespace leasehold::testing
