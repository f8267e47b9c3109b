/// Partial results of attention, merged by each SIMD path.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "common/random.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/numerics/attention_order.hpp"

namespace leasehold {
namespace {

float float_in(SeededRandom& random, float low, float high) {
  return low + (high - low) * (static_cast<float>(random.below(1u << 24)) * 0x1p-24F);
}

/// [count, partial_floats(head_dim)]: maxima are a few apart, and every fourth is one of `special`.
std::vector<float> random_partials(SeededRandom& random, std::uint32_t count,
                                   std::uint32_t head_dim, const std::vector<float>& special) {
  std::vector<float> partials(std::size_t{count} * partial_floats(head_dim));
  for (float& value : partials) value = float_in(random, -2.0F, 2.0F);
  for (std::uint32_t p = 0; p < count; ++p) {
    float* partial = partials.data() + std::size_t{p} * partial_floats(head_dim);
    partial[kPartialMax] = float_in(random, -4.0F, 4.0F);
    partial[kPartialSum] = float_in(random, 1.0F, 256.0F);
    if (!special.empty() && random.below(4) == 0)
      partial[kPartialMax] = special[random.below(special.size())];
  }
  return partials;
}

/// The first element with other bits, or -1. All NaN are the same.
std::ptrdiff_t first_other(const std::vector<float>& a, const std::vector<float>& b) {
  const auto same = [](float x, float y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  const auto at = std::ranges::mismatch(a, b, same);
  return at.in1 == a.end() ? -1 : at.in1 - a.begin();
}

}  // namespace

TEST_CASE("merge: every path has the bits of merge_partials, for any number of partitions") {
  const std::vector<float> special =
      GENERATE(std::vector<float>{}, std::vector<float>{-INFINITY, -0.0F, 0.0F},
               std::vector<float>{NAN, -INFINITY}, std::vector<float>{-1000.0F, 1000.0F});
  const std::uint32_t count = GENERATE(1, 15, 16, 17, 33);
  const std::uint32_t head_dim = GENERATE(33, 80, 128);
  SeededRandom random(count * 1000 + head_dim);
  for (int round = 0; round < 20; ++round) {
    const std::vector<float> partials = random_partials(random, count, head_dim, special);
    std::vector<float> expected(head_dim);
    const float sink = round % 2 == 0 ? kNoSink : float_in(random, -6.0F, 6.0F);
    merge_partials(partials.data(), count, head_dim, sink, expected.data());
    for (const SimdPath path : kSimdPaths) {
      if (!cpu_has(path)) continue;
      CAPTURE(name(path), count, head_dim, round);
      std::vector<float> out(head_dim, NAN);
      row_kernels(path).merge(partials.data(), count, head_dim, sink, out.data());
      REQUIRE(first_other(out, expected) == -1);
    }
  }
}

TEST_CASE("merge: each of many partitions counts, with its own weight") {
  constexpr std::uint32_t kCount = 33;
  constexpr std::uint32_t kHeadDim = 33;
  for (std::uint32_t heavy = 0; heavy < kCount; ++heavy) {
    std::vector<float> partials(std::size_t{kCount} * partial_floats(kHeadDim));
    std::vector<float> expected(kHeadDim);
    for (std::uint32_t d = 0; d < kHeadDim; ++d) expected[d] = static_cast<float>(heavy * 100 + d);
    for (std::uint32_t p = 0; p < kCount; ++p) {
      float* partial = partials.data() + std::size_t{p} * partial_floats(kHeadDim);
      partial[kPartialMax] = p == heavy ? 500.0F : 0.0F;  // the others' weights are 0
      partial[kPartialSum] = 1.0F;
      for (std::uint32_t d = 0; d < kHeadDim; ++d)
        partial[kPartialAcc + d] = static_cast<float>(p * 100 + d);
    }
    for (const SimdPath path : kSimdPaths) {
      if (!cpu_has(path)) continue;
      CAPTURE(name(path), heavy);
      std::vector<float> out(kHeadDim);
      row_kernels(path).merge(partials.data(), kCount, kHeadDim, kNoSink, out.data());
      REQUIRE(first_other(out, expected) == -1);
    }
  }
}

}  // namespace leasehold
