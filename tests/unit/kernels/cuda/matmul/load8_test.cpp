/// Compares load8 of every type with the scalar dequantiser.
#include <catch2/catch.hpp>
#include <string>

#include "kernels/numerics/f16.hpp"
#include "kernels/quant/dequantize.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/kernels/cuda/matmul/load8_params.hpp"
#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr Half kExtremeHalves[] = {0x0001, 0x03ff, 0x0400, 0x7bff, 0x8001, 0xfbff, 0x0000};

/// The row's elements in order, then the results of load8 for the columns beyond its end.
std::vector<std::uint16_t> halves_of(TensorType type, const std::byte* row, std::uint32_t n_in) {
  const std::uint32_t groups = (n_in + 31) / 32;
  DeviceArray<std::uint32_t> words(groups * 16);
  const std::string kernel = "lh_test_load8_" + std::string(name(type));
  const device::Load8Params params = {.row = row, .halves = words.data(), .n_in = n_in};
  const auto result = simt::run({.kernel = kernel.c_str(),
                                 .grid = {.x = groups},
                                 .block_threads = 4,
                                 .params = cuda::KernelParams(params)});
  if (!result) FAIL(result.error().detail);
  std::vector<std::uint16_t> halves;
  for (const std::uint32_t word : words.values()) {
    halves.push_back(static_cast<std::uint16_t>(word));
    halves.push_back(static_cast<std::uint16_t>(word >> 16));
  }
  return halves;
}

/// Ignores the sign of a zero and the kind of a NaN.
std::uint16_t canonical_nan(std::uint16_t half) {
  if ((half & 0x7fff) > 0x7c00) return 0x7e00;
  return half == 0x8000 ? 0 : half;
}

void check_row(TensorType type, const std::byte* row, std::uint32_t n_in) {
  std::vector<float> values(n_in);
  dequantize_row(type, row, values.data(), n_in);
  const auto halves = halves_of(type, row, n_in);
  std::ptrdiff_t first_wrong = -1;
  for (std::uint32_t i = 0; i < halves.size() && first_wrong < 0; ++i) {
    const std::uint16_t expected = i < n_in ? f16_from_f32(values[i]) : 0;
    if (canonical_nan(halves[i]) != canonical_nan(expected)) first_wrong = i;
  }
  CAPTURE(name(type), n_in, reinterpret_cast<std::uintptr_t>(row) % 16);
  REQUIRE(first_wrong == -1);
}

}  // namespace

TEST_CASE("load8: the elements of every type equal the scalar dequantiser's, rounded to halves") {
  SeededRandom random(5);
  for (const TensorType type : kHalfTypes) {
    const DeviceMatrix matrix(random, type, 5, width_of(type, 1500));
    for (std::uint32_t row = 0; row < matrix.n_out; ++row)
      check_row(type, matrix.bytes.data() + row * row_size_bytes(type, matrix.n_in), matrix.n_in);
  }
}

TEST_CASE("load8: rows of 16-bit floats may begin and end anywhere") {
  SeededRandom random(6);
  for (const TensorType type : {TensorType::F16, TensorType::BF16})
    for (const std::uint32_t n_in : {1, 2, 7, 8, 9, 31, 32, 33, 255, 257, 511}) {
      const DeviceMatrix matrix(random, type, 3, n_in);
      for (std::uint32_t row = 0; row < matrix.n_out; ++row)
        check_row(type, matrix.bytes.data() + row * row_size_bytes(type, n_in), n_in);
    }
}

TEST_CASE("load8: extreme scales give the scalar dequantiser's zeros and infinities") {
  SeededRandom random(7);
  for (const TensorType type : kHalfTypes) {
    if (block_shape(type).elements == 1) continue;
    for (const Half half : kExtremeHalves) {
      DeviceMatrix matrix(random, type, 1, 256);
      const std::size_t at = scale_places(type).front();
      for (std::uint32_t block = 0; block < 256 / block_shape(type).elements; ++block)
        std::memcpy(matrix.bytes.data() + block * block_shape(type).size_bytes + at, &half,
                    sizeof half);
      check_row(type, matrix.bytes.data(), 256);
    }
  }
}

}  // namespace leasehold::testing
