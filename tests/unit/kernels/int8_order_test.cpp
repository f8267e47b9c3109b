/// Rounding of activations: by the written rule, on every path.
#include "kernels/numerics/int8_order.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "common/random.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/rounded_rows.hpp"
#include "tests/support/random_blocks.hpp"

namespace leasehold::testing {
namespace {

struct Rounded {
  Rounded(std::size_t n, std::uint32_t block) : q(n), scale(n / block), sums(n / kInt8Strip) {}
  RoundedRowBuffer buffer() { return {q.data(), scale.data(), sums.data()}; }

  std::vector<std::int8_t> q;
  std::vector<float> scale;
  std::vector<std::int16_t> sums;
};

Rounded rounded(const std::vector<float>& x, SimdPath path, std::uint32_t block = kMinInt8Block) {
  Rounded out(x.size(), block);
  row_kernels(path).round_row(x.data(), x.size(), block, out.buffer());
  return out;
}

std::vector<float> block_of(float first, float second) {
  std::vector<float> x(kMinInt8Block, 0.0F);
  x[0] = first;
  x[31] = second;
  return x;
}

}  // namespace

TEST_CASE("int8 order: rounding is to the nearest step, halves to even, the largest to 127") {
  for (const SimdPath path : kSimdPaths) {
    if (!cpu_has(path)) continue;
    CAPTURE(name(path));
    const Rounded even = rounded(block_of(127.0F, 2.5F), path);  // a scale of 1
    CHECK(even.scale[0] == 1.0F);
    CHECK(even.q[0] == 127);
    CHECK(even.q[31] == 2);
    CHECK(even.sums[0] == 127);
    CHECK(even.sums[1] == 2);
    CHECK(rounded(block_of(-127.0F, -3.5F), path).q[31] == -4);
    CHECK(rounded(block_of(-127.0F, -3.5F), path).sums[1] == -4);
    CHECK(rounded(block_of(127.0F, 0.499F), path).q[31] == 0);
  }
}

TEST_CASE("int8 order: blocks too small for a normal scale are zero, and bad ones are NaN") {
  for (const SimdPath path : kSimdPaths) {
    if (!cpu_has(path)) continue;
    CAPTURE(name(path));
    const Rounded small = rounded(block_of(0x1.fffffep-120F, -0x1p-140F), path);
    CHECK(small.scale[0] == 0.0F);
    CHECK(small.q[0] == 0);
    CHECK(small.sums[0] == 0);
    CHECK(rounded(block_of(0x1p-119F, 0), path).q[0] == 127);
    for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
      const Rounded out = rounded(block_of(bad, 1.0F), path);
      CHECK(std::isnan(out.scale[0]));
      CHECK(out.q[31] == 0);
    }
  }
}

TEST_CASE(
    "int8 order: neighbouring blocks of any magnitude, zero and bad ones keep their own scale") {
  constexpr float kMagnitudes[] = {1.0F,        0.0F,  0x1.fffffep-120F, 0x1p-119F, HUGE_VALF,
                                   0x1.8p+127F, -0.0F, 0x1p-112F,        NAN,       0x1p-130F,
                                   -0x1.2p+50F};
  SeededRandom random(8);
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t block = random.below(2) == 0 ? 32 : 256;
    std::vector<float> x;
    for (std::uint64_t left = block * (1 + random.below(11)); left > 0; left -= block) {
      const float magnitude = kMagnitudes[random.below(std::size(kMagnitudes))];
      const std::size_t begin = x.size();
      for (std::uint32_t k = 0; k < block; ++k)
        x.push_back(std::isfinite(magnitude) ? random_floats(random, 1)[0] * magnitude : 0.5F);
      x[begin + random.below(block)] = magnitude;
    }
    const Rounded plain = rounded(x, SimdPath::Scalar, block);
    for (const SimdPath path : kSimdPaths) {
      if (!cpu_has(path)) continue;
      const Rounded out = rounded(x, path, block);
      CAPTURE(name(path), i, block);
      REQUIRE(out.q == plain.q);
      REQUIRE(std::memcmp(out.scale.data(), plain.scale.data(), plain.scale.size() * 4) == 0);
      REQUIRE(out.sums == plain.sums);
    }
  }
}

TEST_CASE(
    "int8 order: every path rounds as the plain loops, and no step is off by more than half") {
  SeededRandom random(7);
  for (int i = 0; i < 2000; ++i) {
    const auto spread = static_cast<int>(random.below(200)) - 100;
    const std::uint32_t block = random.below(2) == 0 ? 32 : 256;
    std::vector<float> x(block * (1 + random.below(4)));
    for (float& value : x) value = std::ldexp(random_floats(random, 1)[0], spread);
    const Rounded plain = rounded(x, SimdPath::Scalar, block);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double d = plain.scale[k / block];
      REQUIRE(std::abs(plain.q[k] * d - x[k]) <= d * 0.50001);
    }
    for (std::size_t strip = 0; strip < plain.sums.size(); ++strip) {
      const auto first = plain.q.begin() + static_cast<std::ptrdiff_t>(strip * kInt8Strip);
      REQUIRE(plain.sums[strip] == std::accumulate(first, first + kInt8Strip, 0));
    }
    for (const SimdPath path : kSimdPaths) {
      if (!cpu_has(path)) continue;
      const Rounded out = rounded(x, path, block);
      CAPTURE(name(path), i);
      REQUIRE(out.q == plain.q);
      REQUIRE(out.scale == plain.scale);
      REQUIRE(out.sums == plain.sums);
    }
  }
}

TEST_CASE("int8 order: cleared rows are zero, and the rows after them stay") {
  const std::vector<float> x(kMinInt8Block, 1.0F);
  RoundedRows rows(2, kMinInt8Block);
  for (const std::size_t row : {0, 1})
    round_row(x.data(), x.size(), kMinInt8Block, rows.buffer(row));
  rows.clear(1);
  const RoundedRow cleared = rows.row(0);
  CHECK(std::all_of(cleared.q, cleared.q + kMinInt8Block, [](std::int8_t q) { return q == 0; }));
  CHECK(cleared.scale[0] == 0.0F);
  CHECK(cleared.sums[0] == 0);
  CHECK(rows.row(1).q[0] == 127);
}

}  // namespace leasehold::testing
