#include "kernels/numerics/f16.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "common/random.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace leasehold {
namespace {

#ifdef __x86_64__
[[gnu::target("f16c")]] float hardware_f32(Half half) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}
[[gnu::target("f16c")]] Half hardware_f16(float value) {
  const __m128i half = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT);
  return static_cast<Half>(_mm_cvtsi128_si32(half));
}
bool has_conversions() {
  return __builtin_cpu_supports("f16c");
}
#elif defined(__aarch64__)
float hardware_f32(Half half) {
  return std::bit_cast<__fp16>(half);
}
Half hardware_f16(float value) {
  return std::bit_cast<Half>(static_cast<__fp16>(value));
}
bool has_conversions() {
  return true;
}
#endif

/// The value by the format's definition, in doubles.
double value_of(std::uint32_t half) {
  const int exponent = half >> 10 & 0x1F;
  const double mantissa = half & 0x3FF;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

/// Visits every half, and both float neighbours of every rounding boundary.
template <class Visit>
void each_edge_case_float(Visit&& visit) {
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto middle = static_cast<float>((value_of(bits) + value_of(bits + 1)) / 2);
    for (const float value : {static_cast<float>(value_of(bits)), middle,
                              std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)}) {
      visit(value);
      visit(-value);
    }
  }
  for (const float value :
       {65520.0F, 65519.99F, 1e30F, INFINITY, 0x1p-25F, 0x1.000002p-25F, 1e-40F})
    visit(value);
  SeededRandom random(1);
  for (int i = 0; i < 100'000; ++i)
    visit(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
}

}  // namespace

TEST_CASE("f16: each of the 65536 halves widens to its value and narrows back") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<Half>(bits);
    const float wide = f32_from_f16(half);
    if ((bits & 0x7C00) != 0x7C00) {
      wrong += wide != value_of(bits) || std::signbit(wide) != (bits >= 0x8000);
      wrong += f16_from_f32(wide) != half;
    } else if ((bits & 0x3FF) == 0) {
      wrong += !std::isinf(wide) || f16_from_f32(wide) != half;
    } else {
      wrong += !std::isnan(wide) || f16_from_f32(wide) != (half | 0x200);
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("f16: narrowing rounds to the nearest half, ties to even") {
  int wrong = 0;
  each_edge_case_float([&](float value) {
    if (std::isnan(value) || std::abs(value) >= 65520.0F) return;
    const Half half = f16_from_f32(value);
    const double error = std::abs(value_of(half) - value);
    for (const int step : {-1, 1}) {
      const std::uint32_t beside = (half & 0x7FFFu) + static_cast<std::uint32_t>(step);
      if (beside > 0x7C00) continue;  // below zero
      const double other = std::abs(value_of(beside) - std::abs(value));
      wrong += other < error || (other == error && (half & 1) != 0);
    }
  });
  REQUIRE(wrong == 0);
  REQUIRE(f16_from_f32(65519.99F) == 0x7BFF);
  REQUIRE(f16_from_f32(65520.0F) == 0x7C00);
  REQUIRE(f16_from_f32(-INFINITY) == 0xFC00);
}

TEST_CASE("f16: the scalar conversions have the bits of this CPU's instructions") {
  if (!has_conversions()) {
    WARN("this CPU has no F16C; nothing to compare");
    return;
  }
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<Half>(bits);
    wrong += std::bit_cast<std::uint32_t>(hardware_f32(half)) !=
             std::bit_cast<std::uint32_t>(f32_from_f16(half));
  }
  each_edge_case_float([&](float value) { wrong += hardware_f16(value) != f16_from_f32(value); });
  REQUIRE(wrong == 0);
}

}  // namespace leasehold
