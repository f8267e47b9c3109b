/// Matrix products from fragments equal three plain loops.
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/numerics/f16.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/support/simt/kernels.hpp"

namespace leasehold::simt {
namespace {

constexpr std::uint32_t kDepth = 48;

std::vector<std::uint16_t> random_halves(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint16_t> halves(n);
  for (auto& half : halves)
    half = f16_from_f32(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 512.0f);
  return halves;
}

/// Among them the smallest and the largest.
std::vector<std::int8_t> random_bytes(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int8_t> bytes(n);
  for (auto& byte : bytes) byte = static_cast<std::int8_t>(random() % 256);
  bytes[0] = bytes[n - 1] = -128;
  bytes[1] = 127;
  return bytes;
}

std::vector<float> plain_product(const std::vector<std::uint16_t>& a,
                                 const std::vector<std::uint16_t>& b, std::size_t columns) {
  const std::size_t rows = a.size() / kDepth;
  std::vector<float> d(rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < kDepth; ++k)
        sum += f32_from_f16(a[row * kDepth + k]) * f32_from_f16(b[k * columns + column]);
      d[row * columns + column] = sum;
    }
  }
  return d;
}

void check_product(const char* kernel, std::size_t rows, std::size_t columns, unsigned threads) {
  const auto a = random_halves(rows * kDepth, 1);
  const auto b = random_halves(kDepth * columns, 2);
  std::vector<float> d(rows * columns, -1.0f);
  const auto result =
      run({.kernel = kernel,
           .grid = {},
           .block_threads = threads,
           .shared_bytes = static_cast<std::uint32_t>(16 * columns * 2),
           .params = cuda::KernelParams(Product{a.data(), b.data(), d.data(), kDepth})});
  if (!result) FAIL(result.error().detail);
  CHECK(d == plain_product(a, b, columns));
}

TEST_CASE("simt: a warp's mma equals the plain product") {
  check_product("lh_test_mma", 16, 8, 32);
}

TEST_CASE("simt: a warp's mma of int8 adds the plain product to its start, extremes included") {
  for (const std::uint32_t depth : {16u, 32u}) {
    const auto a = random_bytes(16 * depth, 3);
    const auto b = random_bytes(8 * depth, 4);
    std::vector<std::int32_t> d(16 * 8);
    const auto result =
        run({.kernel = "lh_test_mma_int8",
             .grid = {},
             .block_threads = 32,
             .params = cuda::KernelParams(Int8Product{a.data(), b.data(), d.data(), depth})});
    if (!result) FAIL(result.error().detail);
    for (std::uint32_t row = 0; row < 16; ++row)
      for (std::uint32_t column = 0; column < 8; ++column) {
        CAPTURE(depth, row, column);
        constexpr std::int32_t kStart = 3;
        CHECK(d[row * 8 + column] == kStart + std::inner_product(a.begin() + row * depth,
                                                                 a.begin() + (row + 1) * depth,
                                                                 b.begin() + column * depth, 0));
      }
  }
}

TEST_CASE("simt: dp4a adds four signed products") {
  const auto a = random_bytes(128, 5);
  const auto b = random_bytes(128, 6);
  std::vector<std::int32_t> d(32, -7);
  const auto result =
      run({.kernel = "lh_test_dp4a",
           .grid = {},
           .block_threads = 32,
           .params = cuda::KernelParams(Int8Product{a.data(), b.data(), d.data(), 0})});
  if (!result) FAIL(result.error().detail);
  for (std::uint32_t i = 0; i < 32; ++i)
    CHECK(d[i] ==
          std::inner_product(a.begin() + 4 * i, a.begin() + 4 * i + 4, b.begin() + 4 * i, -7));
}

TEST_CASE("simt: a warpgroup's wgmma equals the plain product") {
  check_product("lh_test_wgmma_8", 64, 8, 128);
  check_product("lh_test_wgmma_32", 64, 32, 128);
  check_product("lh_test_wgmma_128", 64, 128, 128);
}

/// The elements of a as the kernel reads them.
void check_int8_group(const char* kernel, std::uint32_t columns, bool is_signed) {
  constexpr std::uint32_t kRows = 64, kBytes = 96;
  const auto a = random_bytes(std::size_t{kRows} * kBytes, 7);
  const auto b = random_bytes(std::size_t{columns} * kBytes, 8);
  std::vector<std::int32_t> d(std::size_t{kRows} * columns);
  const auto result =
      run({.kernel = kernel,
           .grid = {},
           .block_threads = 128,
           .shared_bytes = 32 * columns,
           .params = cuda::KernelParams(Int8Product{a.data(), b.data(), d.data(), kBytes})});
  if (!result) FAIL(result.error().detail);
  for (std::uint32_t row = 0; row < kRows; ++row)
    for (std::uint32_t column = 0; column < columns; ++column) {
      std::int32_t sum = 0;
      for (std::uint32_t k = 0; k < kBytes; ++k) {
        const std::int8_t byte = a[row * kBytes + k];
        sum += (is_signed ? byte : static_cast<std::uint8_t>(byte)) * b[column * kBytes + k];
      }
      CAPTURE(kernel, row, column);
      REQUIRE(d[row * columns + column] == sum);
    }
}

TEST_CASE("simt: a warpgroup's wgmma of bytes equals the plain product, extremes included") {
  for (const std::uint64_t seed : {0u, 2u}) {  // late and early products
    set_order_seed(seed);
    check_int8_group("lh_test_wgmma_int8_8", 8, true);
    check_int8_group("lh_test_wgmma_int8_128", 128, true);
    check_int8_group("lh_test_wgmma_uint8_32", 32, false);
    set_order_seed(0);
  }
}

Result<void> run_int8_group(const char* kernel, const Int8Product& params) {
  return run({.kernel = kernel,
              .grid = {},
              .block_threads = 128,
              .shared_bytes = 256,
              .params = cuda::KernelParams(params)});
}

TEST_CASE("simt: wgmma of bytes adds as late as its waits allow, or at once") {
  std::vector<std::int32_t> d(3 * 128);
  REQUIRE(run_int8_group("lh_test_wgmma_int8_waits", {nullptr, nullptr, d.data(), 0}));
  for (std::size_t i = 0; i < d.size(); i += 3)
    REQUIRE(std::vector(d.begin() + i, d.begin() + i + 3) == std::vector{0, 32, 64});
  set_order_seed(2);
  const auto result = run_int8_group("lh_test_wgmma_int8_waits", {nullptr, nullptr, d.data(), 0});
  set_order_seed(0);
  REQUIRE(result);
  for (const std::int32_t sum : d) REQUIRE(sum == 64);
}

TEST_CASE("simt: a warpgroup whose threads differ in whether wgmma adds is an error") {
  CHECK(run_int8_group("lh_test_wgmma_int8_differs", {nullptr, nullptr, nullptr, 1}));
  CHECK_FALSE(run_int8_group("lh_test_wgmma_int8_differs", {nullptr, nullptr, nullptr, 0}));
}

}  // namespace
}  // namespace leasehold::simt
