/// Keys and values as Q8_0: rounded by the written rule on every path, and read exactly.
#include "kernels/numerics/kv_q8.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "common/random.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "tests/support/random_blocks.hpp"

namespace leasehold::testing::kv_q8 {
namespace {

struct Rounded {
  bool operator==(const Rounded&) const = default;
  float scale(std::size_t block = 0) const { return f32_from_f16(scales[block]); }
  float value(std::size_t i) const { return kv_value(q[i], scale(i / kMinInt8Block)); }

  std::vector<std::int8_t> q;
  std::vector<Half> scales;
};

Rounded rounded(const std::vector<float>& x, SimdPath path) {
  Rounded out{.q = std::vector<std::int8_t>(x.size()),
              .scales = std::vector<Half>(x.size() / kMinInt8Block)};
  row_kernels(path).round_kv(x.data(), x.size(), out.q.data(), out.scales.data());
  return out;
}

std::vector<SimdPath> paths() {
  std::vector<SimdPath> all;
  for (const SimdPath path : kSimdPaths)
    if (cpu_has(path)) all.push_back(path);
  return all;
}

std::vector<float> block_of(float first, float last) {
  std::vector<float> x(kMinInt8Block, 0.0F);
  x.front() = first;
  x.back() = last;
  return x;
}

}  // namespace

TEST_CASE("kv q8_0: elements round to the nearest step of the stored scale, halves to even") {
  const SimdPath path = GENERATE(from_range(paths()));
  CAPTURE(name(path));
  const Rounded whole = rounded(block_of(127.0F, 2.5F), path);
  CHECK(whole.scale() == 1.0F);
  CHECK(whole.q.front() == 127);
  CHECK(whole.q.back() == 2);
  CHECK(rounded(block_of(-127.0F, -3.5F), path).q.back() == -4);
  CHECK(rounded(block_of(127.0F, 0.499F), path).q.back() == 0);
  // The f16 nearest to 1000 / 127 is 7.875, so the largest element is 126.98 steps.
  const Rounded stored = rounded(block_of(1000.0F, 500.0F), path);
  CHECK(stored.scale() == 7.875F);
  CHECK(stored.q.front() == 127);
  CHECK(stored.q.back() == 63);
}

TEST_CASE("kv q8_0: each 32 elements have a scale, and zeros are zero") {
  const SimdPath path = GENERATE(from_range(paths()));
  std::vector<float> x(96, 0.0F);
  x[0] = 127.0F;
  x[95] = -254.0F;
  const Rounded out = rounded(x, path);
  CHECK(out.scale(0) == 1.0F);
  CHECK(out.scale(1) == 0.0F);
  CHECK(out.scale(2) == 2.0F);
  CHECK(out.q[95] == -127);
  CHECK(out.value(40) == 0.0F);
}

TEST_CASE("kv q8_0: subnormal scales limit codes, and values with a scale beyond f16 are NaN") {
  const SimdPath path = GENERATE(from_range(paths()));
  CAPTURE(name(path));
  // 1.4 times the smallest half is stored as 1: 178 steps are limited to 127.
  const Rounded tiny = rounded(block_of(127 * 1.4F * 0x1p-24F, -127 * 1.4F * 0x1p-24F), path);
  CHECK(tiny.scale() == 0x1p-24F);
  CHECK(tiny.q.front() == 127);
  CHECK(tiny.q.back() == -127);
  CHECK(rounded(block_of(0x1p-24F, 0), path).q.front() == 0);  // its scale is zero
  for (const float bad : {1e7F, HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    const Rounded out = rounded(block_of(bad, 1.0F), path);
    for (std::size_t i = 0; i < kMinInt8Block; ++i) REQUIRE(std::isnan(out.value(i)));
  }
}

TEST_CASE("kv q8_0: every path rounds alike, no value is off by more than half a step") {
  SeededRandom random(11);
  for (int i = 0; i < 2000; ++i) {
    const auto spread = static_cast<int>(random.below(36)) - 20;
    std::vector<float> x(kMinInt8Block * (1 + random.below(4)));
    for (float& value : x) value = std::ldexp(random_floats(random, 1)[0], spread);
    const Rounded plain = rounded(x, SimdPath::Scalar);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const float d = plain.scale(k / kMinInt8Block);
      if (d < 0x1p-14F) continue;
      REQUIRE(std::abs(double{plain.value(k)} - x[k]) <= d * 0.5001);
      REQUIRE(double{plain.value(k)} == static_cast<double>(plain.q[k]) * d);  // exact
    }
    for (const SimdPath path : paths()) {
      CAPTURE(name(path), i);
      REQUIRE(rounded(x, path) == plain);
    }
  }
}

}  // namespace leasehold::testing::kv_q8
