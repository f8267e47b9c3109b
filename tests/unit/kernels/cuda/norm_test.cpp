#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cuda/plan/row_plan.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {
namespace {

struct NormCase {
  NormCase(SeededRandom& random, std::uint32_t width_)
      : width(width_),
        step(rows_of({3}, {3}), 1, 2),
        x(random_floats(random, std::size_t{3} * width, 3.0F)),
        weight_memory(width * sizeof(float)) {
    weight_memory.fill<float>(random_floats(random, width));
  }
  RmsNormArgs args(const float* from, float* out) const {
    return {.site = LaunchSite::AttentionNorm,
            .x = from,
            .weight = weight_memory.at().as<const float>(),
            .out = out,
            .width = width,
            .epsilon = 1e-5F};
  }
  const float* weight() const { return reinterpret_cast<const float*>(weight_memory.bytes()); }
  std::vector<float> expected() {
    std::vector<float> out(x.size());
    step.reference().rms_norm(step.context(), args(x.data(), out.data()));
    return out;
  }

  std::uint32_t width;
  DeviceStep step;
  std::vector<float> x;
  LeasedMemory weight_memory;
};

}  // namespace

TEST_CASE("cuda: rms_norm has the reference's bits, in place or not") {
  SeededRandom random(test_seed());
  for (const std::uint32_t width : {1u, 24u, 64u, 100u, 576u, 5000u, 12032u, 12300u}) {
    CAPTURE(width, test_seed());
    NormCase c(random, width);
    const auto expected = c.expected();
    auto out = poisoned(c.x.size() / 3 * 5);
    c.step.run(cuda::plan_rms_norm(c.step.plan(), c.args(c.x.data(), out.data()), {c.weight()}));
    REQUIRE(is_poison(out[c.x.size()]));
    out.resize(c.x.size());
    REQUIRE(first_difference(out, expected) == -1);
    auto in_place = c.x;
    c.step.run(
        cuda::plan_rms_norm(c.step.plan(), c.args(in_place.data(), in_place.data()), {c.weight()}),
        7);
    REQUIRE(first_difference(in_place, expected) == -1);
  }
}

TEST_CASE("cuda: rms_norm also stores its output as tiles") {
  SeededRandom random(test_seed());
  for (const std::uint32_t width : {64u, 600u, 5000u, 12544u}) {
    CAPTURE(width, test_seed());
    NormCase c(random, width);
    const auto expected = c.expected();
    TileMemory tiles(8, width);
    auto out = poisoned(c.x.size());
    c.step.run(cuda::plan_rms_norm(c.step.plan(), c.args(c.x.data(), out.data()), {c.weight()},
                                   {.tiles = tiles.view()}));
    REQUIRE(first_difference(out, expected) == -1);
    for (std::uint32_t row = 0; row < 3; ++row)
      for (std::uint32_t i = 0; i < width; ++i) {
        const float value = expected[row * width + i];
        REQUIRE(std::fabs(tiles.at(row, i) - value) <= 0x1p-11F * std::fabs(value) + 1e-8F);
      }
    REQUIRE(is_poison(tiles.scales[3]));
  }
}

TEST_CASE("cuda: rms_norm without floats stores the same tiles, and floats only if it needs them") {
  SeededRandom random(test_seed());
  for (const std::uint32_t width : {64u, 5000u, 12544u}) {
    CAPTURE(width, test_seed());
    NormCase c(random, width);
    TileMemory with_floats(8, width);
    TileMemory without(8, width);
    auto out = poisoned(c.x.size());
    c.step.run(cuda::plan_rms_norm(c.step.plan(), c.args(c.x.data(), out.data()), {c.weight()},
                                   {.tiles = with_floats.view()}));
    const auto expected = out;
    out = poisoned(c.x.size());
    c.step.run(cuda::plan_rms_norm(c.step.plan(), c.args(c.x.data(), out.data()), {c.weight()},
                                   {.tiles = without.view()}, false));
    REQUIRE(without.halves == with_floats.halves);
    const bool fits_shared = width < 12'000;  // a row that does not is read again from `out`
    for (std::size_t i = 0; i < out.size(); ++i)
      REQUIRE((fits_shared ? is_poison(out[i]) : out[i] == expected[i]));
  }
}

TEST_CASE("cuda: on a stopped engine a kernel changes nothing") {
  SeededRandom random(test_seed());
  NormCase c(random, 64);
  c.step.mirror.engine_stopped = 1;
  auto out = poisoned(c.x.size());
  c.step.run(cuda::plan_rms_norm(c.step.plan(), c.args(c.x.data(), out.data()), {c.weight()}));
  for (const float value : out) REQUIRE(is_poison(value));
}

}  // namespace leasehold::testing
