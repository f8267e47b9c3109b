/// Dequantisers against blocks written out by hand, and AVX2 against the scalar oracle.
#include "kernels/quant/dequantize.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cstring>

#include "common/random.hpp"
#include "kernels/cpu/avx2/rows.hpp"
#include "kernels/numerics/f16.hpp"

namespace leasehold {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::vector<float> dequantized(TensorType type, const std::vector<std::byte>& bytes,
                               std::size_t n) {
  std::vector<float> out(n);
  dequantize_row(type, bytes.data(), out.data(), n);
  return out;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}

}  // namespace

TEST_CASE("dequantize: F32 and F16 are little-endian and unchanged") {
  const auto f32 = bytes_of({0x00, 0x00, 0x80, 0x3F, 0x00, 0x00, 0x20, 0xC1});
  REQUIRE(dequantized(TensorType::F32, f32, 2) == std::vector<float>{1.0F, -10.0F});
  const auto f16 = bytes_of({0x00, 0x3C, 0x00, 0xC9, 0x01, 0x00});
  REQUIRE(dequantized(TensorType::F16, f16, 3) == std::vector<float>{1.0F, -10.0F, 0x1p-24F});
}

TEST_CASE("dequantize: Q8_0 is a half scale, then 32 signed bytes") {
  std::vector<std::byte> block = bytes_of({0x00, 0x38});  // 0.5
  for (int i = 0; i < 32; ++i) block.push_back(static_cast<std::byte>(i * 8 - 128));
  const auto values = dequantized(TensorType::Q8_0, block, 32);
  for (int i = 0; i < 32; ++i) {
    CAPTURE(i);
    REQUIRE(values[static_cast<std::size_t>(i)] == 0.5F * static_cast<float>(i * 8 - 128));
  }
}

TEST_CASE("dequantize: Q4_0 keeps elements 0 to 15 in low nibbles, 16 to 31 in high ones") {
  std::vector<std::byte> block = bytes_of({0x00, 0xC0});  // -2
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<std::byte>(i | (15 - i) << 4));
  const auto values = dequantized(TensorType::Q4_0, block, 32);
  for (int i = 0; i < 16; ++i) {
    CAPTURE(i);
    REQUIRE(values[static_cast<std::size_t>(i)] == -2.0F * static_cast<float>(i - 8));
    REQUIRE(values[static_cast<std::size_t>(i + 16)] == -2.0F * static_cast<float>(15 - i - 8));
  }
}

TEST_CASE("dequantize: blocks follow each other, each with its own scale") {
  std::vector<std::byte> row;
  for (const int high : {0x3C, 0x40}) {  // 1, 2
    row.push_back(std::byte{0});
    row.push_back(static_cast<std::byte>(high));
    row.insert(row.end(), 32, std::byte{3});
  }
  const auto values = dequantized(TensorType::Q8_0, row, 64);
  REQUIRE(values[31] == 3.0F);
  REQUIRE(values[32] == 6.0F);
}

TEST_CASE("dequantize: AVX2 gives the oracle's bits for every type and for any bytes") {
  if (!has_avx2()) {
    WARN("this CPU has no AVX2: nothing to compare");
    return;
  }
  const TensorType type =
      GENERATE(TensorType::F32, TensorType::F16, TensorType::Q8_0, TensorType::Q4_0);
  SeededRandom random(3);
  for (const std::size_t blocks : {1, 2, 3, 7, 8, 9, 33}) {
    const std::size_t n = blocks * block_shape(type).elements;
    std::vector<std::byte> bytes(row_size_bytes(type, n));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    std::vector<float> fast(n);
    avx2::dequantize_row(type, bytes.data(), fast.data(), n);
    const auto oracle = dequantized(type, bytes, n);
    CAPTURE(name(type), n);
    REQUIRE(std::memcmp(fast.data(), oracle.data(), n * sizeof(float)) == 0);
  }
}

}  // namespace leasehold
