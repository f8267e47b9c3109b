/// Compares dequantisers with the published formulas of their formats, and SIMD paths with the
/// scalar oracle: the same bits for any bytes.
#include "kernels/quant/dequantize.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/random.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "tests/support/plain_formats.hpp"
#include "tests/support/random_blocks.hpp"

namespace leasehold {
namespace {

using testing::kEveryType;
using testing::scale_places;

/// Zeros, the smallest and largest subnormals, the smallest and largest normals, ones, infinities,
/// quiet and signalling NaNs.
constexpr std::uint16_t kExtremeHalves[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03FF,
                                            0x0400, 0x7BFF, 0xFBFF, 0x3C00, 0xBC00,
                                            0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7D01};

std::vector<std::byte> random_blocks(SeededRandom& random, TensorType type, std::size_t blocks) {
  const BlockShape shape = block_shape(type);
  std::vector<std::byte> bytes(blocks * shape.size_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  for (std::size_t block = 0; block < blocks; ++block)
    for (const std::size_t at : scale_places(type)) {
      if (random.below(2) == 0) continue;  // otherwise keeps the random bytes
      const std::uint16_t half = kExtremeHalves[random.below(std::size(kExtremeHalves))];
      std::memcpy(bytes.data() + block * shape.size_bytes + at, &half, sizeof half);
    }
  return bytes;
}

/// Bit for bit; any NaN equals any NaN.
bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

std::ptrdiff_t first_unequal_value(const std::vector<float>& a, const std::vector<float>& b) {
  const auto at = std::ranges::mismatch(a, b, same);
  return at.in1 == a.end() ? -1 : at.in1 - a.begin();
}

std::vector<float> dequantized(TensorType type, const std::vector<std::byte>& bytes,
                               std::size_t n) {
  std::vector<float> out(n);
  dequantize_row(type, bytes.data(), out.data(), n);
  return out;
}

}  // namespace

TEST_CASE("dequantize: every type matches its published formula, rounded once, for any bytes") {
  const TensorType type = GENERATE(from_range(std::begin(kEveryType), std::end(kEveryType)));
  SeededRandom random(11);
  for (int round = 0; round < 40; ++round) {
    const std::size_t blocks = 1 + random.below(5);
    const std::size_t n = blocks * block_shape(type).elements;
    const auto bytes = random_blocks(random, type, blocks);
    const auto plain = testing::plain_values(static_cast<std::uint32_t>(type), bytes.data(), n);
    std::vector<float> expected(n);
    std::ranges::transform(plain, expected.begin(), [](double v) { return static_cast<float>(v); });
    const auto values = dequantized(type, bytes, n);
    const std::ptrdiff_t at = first_unequal_value(values, expected);
    CAPTURE(name(type), n, at);
    REQUIRE(at == -1);
  }
}

TEST_CASE("dequantize: the SIMD paths give the oracle's bits for every type and for any bytes") {
  const SimdPath path = best_simd_path();
  if (path == SimdPath::Scalar) {
    WARN("this CPU has no SIMD path; nothing to compare");
    return;
  }
  const TensorType type = GENERATE(from_range(std::begin(kEveryType), std::end(kEveryType)));
  SeededRandom random(3);
  for (const std::size_t blocks : {1, 2, 3, 7, 8, 9, 33, 200}) {
    const std::size_t n = blocks * block_shape(type).elements;
    const auto bytes = random_blocks(random, type, blocks);
    std::vector<float> fast(n);
    row_kernels(path).dequantize_row(type, bytes.data(), fast.data(), n);
    const std::ptrdiff_t at = first_unequal_value(fast, dequantized(type, bytes, n));
    CAPTURE(name(type), n, at);
    REQUIRE(at == -1);
  }
}

TEST_CASE("tensor types: a number is supported, only named, or unknown") {
  for (const TensorType type : kEveryType) {
    CAPTURE(name(type));
    CHECK(tensor_type_from_gguf(static_cast<std::uint32_t>(type)) == type);
    CHECK(row_size_bytes(type, 512) ==
          512 / block_shape(type).elements * block_shape(type).size_bytes);
  }
  std::size_t computed = 0;
  for (std::uint32_t number = 0; number < 64; ++number)
    computed += tensor_type_from_gguf(number).has_value() ? 1 : 0;
  CHECK(computed == std::size(kEveryType));
  CHECK(gguf_type_name(20) == "IQ4_NL");
  CHECK(gguf_type_name(39) == "MXFP4");
  CHECK(gguf_type_name(4).empty());
  CHECK(gguf_type_name(4000).empty());
}

}  // namespace leasehold
