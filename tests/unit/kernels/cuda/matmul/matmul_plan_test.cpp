/// The kernels and grids that matmul plans choose.
#include <catch2/catch.hpp>
#include <string>

#include "kernels/cuda/device/int8/int8_units.hpp"
#include "kernels/cuda/device/weight_chunks.hpp"
#include "kernels/cuda/plan/matmul_kernels.hpp"
#include "kernels/cuda/plan/matmul_plan.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr cuda::DeviceProperties kHopper = {
    .n_sms = 132, .max_shared_bytes = 227 * 1024, .has_wgmma = true};
constexpr cuda::DeviceProperties kAmpere = {
    .n_sms = 132, .max_shared_bytes = 227 * 1024, .has_wgmma = false};
constexpr cuda::DeviceProperties kTuring = {
    .n_sms = 40, .max_shared_bytes = 64 * 1024, .has_wgmma = false};

cuda::MatmulOperands operands(TensorType type, std::uint32_t n_out, std::uint32_t n_in,
                              std::uint32_t n_results) {
  return {.gate = {}, .type = type, .n_out = n_out, .n_in = n_in, .n_results = n_results};
}

cuda::KernelLaunch matmul_of(cuda::MatmulGroup of, const cuda::DeviceProperties& card) {
  float partials = 0;
  const cuda::MatmulScratch scratch = {
      .tiles = {.halves = nullptr, .scales = nullptr, .n_in = of.front().n_in},
      .rounded = {.n_in = of.front().n_in, .block = block_shape(of.front().type).elements},
      .rows_are_prepared = true,
      .partials = &partials,
      .counters = nullptr};
  const auto launches = cuda::plan_matmul(of, scratch, card);
  REQUIRE(launches.size() == 1);
  return launches.front();
}
cuda::KernelLaunch matmul_of(const cuda::MatmulOperands& of, const cuda::DeviceProperties& card) {
  return matmul_of(cuda::MatmulGroup(&of, 1), card);
}

}  // namespace

TEST_CASE("matmul plan: every name in the table is a kernel") {
  for (const TensorType type : kHalfTypes) {
    for (const std::uint32_t tiles : {1, 2, 4, 8}) {
      const std::string kernel = cuda::few_rows_kernel(type, tiles);
      CAPTURE(kernel);
      REQUIRE(simt::find(kernel) != nullptr);
      REQUIRE(kernel.ends_with("_" + std::to_string(tiles)));
    }
    for (const std::uint32_t columns : {64, 128}) {
      const std::string kernel = cuda::many_rows_kernel(type, columns);
      CAPTURE(kernel);
      REQUIRE(simt::find(kernel) != nullptr);
      REQUIRE(kernel.ends_with("_" + std::to_string(columns)));
    }
  }
}

TEST_CASE("matmul plan: few rows use the fewest tiles that hold them") {
  const auto kernel = [](std::uint32_t n_results) {
    return std::string(
        matmul_of(operands(TensorType::Q4_K, 4096, 4096, n_results), kHopper).kernel);
  };
  REQUIRE(kernel(1) == "lh_matmul_few_q4_k_1");
  REQUIRE(kernel(8) == "lh_matmul_few_q4_k_1");
  REQUIRE(kernel(9) == "lh_matmul_few_q4_k_2");
  REQUIRE(kernel(32) == "lh_matmul_few_q4_k_4");
  REQUIRE(kernel(64) == "lh_matmul_few_q4_k_8");
}

TEST_CASE("matmul plan: slices run in parallel until four blocks per SM are resident") {
  const auto small = matmul_of(operands(TensorType::Q4_K, 4096, 4096, 1), kHopper);
  REQUIRE(small.grid == cuda::GridSize{.x = 64, .y = 1, .z = 8});
  // Gate and up of a 7B shape: 172 row tiles, so four parts of two slices each.
  const auto gate = matmul_of(operands(TensorType::Q4_K, 11008, 4096, 1), kHopper);
  REQUIRE(gate.grid == cuda::GridSize{.x = 172, .y = 1, .z = 4});
  // 224 row tiles: three parts, the last of two slices.
  const auto wider = matmul_of(operands(TensorType::Q4_K, 14336, 4096, 1), kHopper);
  REQUIRE(wider.grid == cuda::GridSize{.x = 224, .y = 1, .z = 3});
  const auto large = matmul_of(operands(TensorType::Q4_K, 128256, 4096, 1), kHopper);
  REQUIRE(large.grid == cuda::GridSize{.x = 2004, .y = 1, .z = 1});
  REQUIRE(cuda::split_bytes(operands(TensorType::Q4_K, 4096, 4096, 1), kHopper) ==
          8 * 8 * 4096 * sizeof(float));
  REQUIRE(cuda::split_bytes(operands(TensorType::Q4_K, 128256, 4096, 1), kHopper) == 0);
  for (const std::uint32_t n_out : {1, 64, 4000, 8400, 14336, 33728, 33792})
    for (const std::uint32_t n_results : {1, 20, 64}) {
      const auto one = operands(TensorType::F16, n_out, 5000, n_results);
      REQUIRE(cuda::split_bytes(one, kHopper) <= cuda::max_split_bytes(kHopper));
      const cuda::GridSize grid = matmul_of(one, kHopper).grid;
      REQUIRE((grid.z == 1 || grid.x <= cuda::counter_count(kHopper)));
      REQUIRE((grid.z == 1) == (cuda::split_bytes(one, kHopper) == 0));
    }
}

TEST_CASE("matmul plan: up to three neighbours of one type share a launch, whose parts count all") {
  const auto q4 = operands(TensorType::Q4_K, 4096, 4096, 1);
  const auto small = operands(TensorType::Q4_K, 1000, 4096, 1);
  const auto q6 = operands(TensorType::Q6_K, 1000, 4096, 1);
  const auto floats = operands(TensorType::F32, 1000, 4096, 1);
  auto adds = small;
  adds.accumulate = true;
  using Group = std::vector<cuda::MatmulOperands>;
  CHECK(cuda::joined_matmuls(Group{q4}) == 1);
  CHECK(cuda::joined_matmuls(Group{q4, small, small}) == 3);
  CHECK(cuda::joined_matmuls(Group{q4, small, small, small}) == 3);
  CHECK(cuda::joined_matmuls(Group{q4, small, q6}) == 2);
  CHECK(cuda::joined_matmuls(Group{q4, q6, q4}) == 1);
  CHECK(cuda::joined_matmuls(Group{q4, adds}) == 1);
  CHECK(cuda::joined_matmuls(Group{floats, floats}) == 1);

  const auto together = matmul_of(Group{q4, small, small}, kHopper);
  REQUIRE(together.grid == cuda::GridSize{.x = 64 + 16 + 16, .y = 1, .z = 6 - 2});
  // Gate and up of a 7B shape: 344 row tiles, so two parts.
  const auto gate = operands(TensorType::Q4_K, 11008, 4096, 1);
  REQUIRE(matmul_of(Group{gate, gate}, kHopper).grid == cuda::GridSize{.x = 344, .y = 1, .z = 2});
  for (const std::uint32_t n_out : {1, 65, 4000, 11008, 16896, 16900, 33792})
    for (const std::uint32_t n_results : {1, 20, 64}) {
      const auto one = operands(TensorType::F16, n_out, 5000, n_results);
      const Group all{one, one, one};
      const cuda::GridSize grid = matmul_of(all, kHopper).grid;
      REQUIRE(cuda::split_bytes(all, kHopper) <= cuda::max_split_bytes(kHopper));
      REQUIRE((grid.z == 1 || grid.x <= cuda::counter_count(kHopper)));
    }
}

namespace {

cuda::MatmulOperands grouped(std::uint32_t n_out, std::uint32_t n_in, std::uint32_t n_results) {
  auto one = operands(TensorType::Q4_K, n_out, n_in, n_results);
  one.layout = MatrixLayout::RowGroups;
  return one;
}

}  // namespace

TEST_CASE("matmul plan: blocks share the chunks of int8 rows until every SM has two") {
  using Group = std::vector<cuda::MatmulOperands>;
  const auto grid = [](const Group& group) { return matmul_of(group, kAmpere).grid; };
  // 32 rows of a 7B shape: o, then down; 64 blocks without parts.
  CHECK(grid({grouped(4096, 4096, 32)}) == cuda::GridSize{.x = 64, .y = 1, .z = 8});
  CHECK(grid({grouped(4096, 11008, 32)}) == cuda::GridSize{.x = 64, .y = 1, .z = 8});
  const auto q = grouped(4096, 4096, 32), gate = grouped(11008, 4096, 32);
  CHECK(grid({q, q, q}) == cuda::GridSize{.x = 192, .y = 1, .z = 2});
  CHECK(grid({gate, gate}) == cuda::GridSize{.x = 344, .y = 1, .z = 1});
  CHECK(grid({grouped(4096, 4096, 100)}) == cuda::GridSize{.x = 64, .y = 2, .z = 4});
  CHECK(grid({grouped(4096, 4096, 512)}) == cuda::GridSize{.x = 64, .y = 8, .z = 1});
  CHECK(grid({grouped(4096, 4096, 8)}) == cuda::GridSize{.x = 256, .y = 1, .z = 1});
  auto experts = grouped(1024, 4096, 32);
  experts.experts.n_in_turn = experts.n_experts = 2;
  CHECK(grid({experts}) == cuda::GridSize{.x = 16, .y = 2, .z = 1});
  for (const std::uint32_t n_out : {1, 65, 1024, 4096, 8400, 11008, 128256})
    for (const std::uint32_t n_results : {1, 8, 9, 33, 64, 65, 130, 300}) {
      const Group all{grouped(n_out, 4096, n_results), grouped(n_out, 4096, n_results)};
      const std::uint64_t bytes = cuda::split_bytes(all, kAmpere);
      CAPTURE(n_out, n_results);
      CHECK(bytes <= cuda::max_split_bytes(kAmpere));
      CHECK((grid(all).z == 1) == (bytes == 0));
      CHECK((grid(all).z == 1 || grid(all).x * grid(all).y <= cuda::counter_count(kAmpere)));
    }
}

TEST_CASE("matmul plan: more than eight int8 rows use wgmma, in blocks that fill the card") {
  const auto launch = [](const cuda::MatmulOperands& one) { return matmul_of(one, kHopper); };
  const auto kernel = [&](std::uint32_t n_results) {
    return std::string(launch(grouped(4096, 4096, n_results)).kernel);
  };
  CHECK(kernel(8) == "lh_matmul_int8_q4_k_8");
  CHECK(kernel(9) == "lh_matmul_int8_many_q4_k_32");
  CHECK(kernel(33) == "lh_matmul_int8_many_q4_k_64");
  CHECK(kernel(65) == "lh_matmul_int8_many_q4_k_128");
  // o of a 0.5B shape: 56 blocks would leave most SMs idle.
  CHECK(launch(grouped(896, 896, 32)).kernel == std::string("lh_matmul_int8_q4_k_32"));
  CHECK(launch(grouped(1152, 896, 32)).kernel == std::string("lh_matmul_int8_many_q4_k_32"));
  // A 7B shape: o of 32 and of 512 rows, the latter in 128 blocks for 132 SMs.
  CHECK(launch(grouped(4096, 4096, 32)).grid == cuda::GridSize{.x = 32, .y = 1, .z = 8});
  CHECK(launch(grouped(4096, 4096, 512)).grid == cuda::GridSize{.x = 32, .y = 4, .z = 1});
  CHECK(launch(grouped(11008, 4096, 64)).grid == cuda::GridSize{.x = 86, .y = 1, .z = 4});
  for (const std::uint32_t n_out : {1, 65, 1024, 4096, 8400, 11008, 128256})
    for (const std::uint32_t n_results : {9, 33, 64, 65, 130, 300, 512}) {
      const std::vector all{grouped(n_out, 4096, n_results), grouped(n_out, 4096, n_results)};
      const cuda::GridSize grid = matmul_of(all, kHopper).grid;
      CAPTURE(n_out, n_results);
      CHECK(cuda::split_bytes(all, kHopper) <= cuda::max_split_bytes(kHopper));
      CHECK((grid.z == 1 || grid.x * grid.y <= cuda::counter_count(kHopper)));
    }
}

TEST_CASE("matmul plan: every name of a kernel with wgmma is a kernel that fits the card") {
  for (const TensorType type : kHalfTypes) {
    if (!has_row_groups(type) || !device::has_int8_many(type)) continue;
    for (const std::uint32_t columns : device::kInt8ManyColumns) {
      const std::string kernel = cuda::int8_many_kernel(type, columns);
      CAPTURE(kernel);
      REQUIRE(simt::find(kernel) != nullptr);
      REQUIRE(device::int8_many_shared_bytes(type, columns) + 2048 <= kHopper.max_shared_bytes);
    }
  }
}

TEST_CASE(
    "matmul plan: many rows use wgmma if the card has it, otherwise the widest few-rows kernel") {
  const auto wide = matmul_of(operands(TensorType::Q6_K, 14336, 4096, 512), kHopper);
  REQUIRE(std::string(wide.kernel) == "lh_matmul_many_q6_k_128");
  REQUIRE(wide.grid == cuda::GridSize{.x = 112, .y = 4, .z = 1});
  const auto narrow = matmul_of(operands(TensorType::Q6_K, 4096, 4096, 256), kHopper);
  REQUIRE(std::string(narrow.kernel) == "lh_matmul_many_q6_k_64");
  REQUIRE(narrow.grid == cuda::GridSize{.x = 32, .y = 4, .z = 1});
  const auto turing = matmul_of(operands(TensorType::Q6_K, 4096, 4096, 256), kTuring);
  REQUIRE(std::string(turing.kernel) == "lh_matmul_few_q6_k_4");
  REQUIRE(turing.grid == cuda::GridSize{.x = 64, .y = 8, .z = 1});
}

TEST_CASE("matmul plan: no launch requests more shared memory than the card has") {
  for (const cuda::DeviceProperties& card : {kHopper, kTuring})
    for (const TensorType type : kHalfTypes)
      for (const std::uint32_t n_results : {1, 10, 20, 40, 100, 1000})
        REQUIRE(matmul_of(operands(type, 1024, 1024, n_results), card).shared_bytes <=
                card.max_shared_bytes);
}

TEST_CASE("matmul plan: a launch leaves room for its kernel's static shared memory") {
  cuda::DeviceProperties card = kTuring;
  card.max_shared_bytes =
      matmul_of(operands(TensorType::Q4_K, 1024, 1024, 64), kHopper).shared_bytes;
  REQUIRE(matmul_of(operands(TensorType::Q4_K, 1024, 1024, 64), card).shared_bytes + 128 <=
          card.max_shared_bytes);
}

TEST_CASE("matmul plan: x is prepared as tiles unless it already is or the weights are F32") {
  SeededRandom random(1);
  const DeviceMatrix quants(random, TensorType::Q8_0, 8, 64);
  const DeviceMatrix floats(random, TensorType::F32, 8, 64);
  using Names = std::vector<std::string>;
  const auto x = random_floats(random, 64);
  REQUIRE(kernels_of({.weight = &quants, .x = x}) ==
          Names{"lh_prepare_tiles", "lh_matmul_few_q8_0_1"});
  REQUIRE(kernels_of({.weight = &quants, .x = x}, {.prepare_first = true}) ==
          Names{"lh_matmul_few_q8_0_1"});
  REQUIRE(kernels_of({.weight = &floats, .x = x}) == Names{"lh_matmul_f32_1"});
}

TEST_CASE("matmul plan: the width alone decides the slices of a row, at most eight") {
  REQUIRE(device::slice_length(1) == 256);
  REQUIRE(device::slice_length(2048) == 256);
  REQUIRE(device::slice_length(2049) == 512);
  REQUIRE(device::slice_length(4096) == 512);
  for (std::uint32_t n_in = 1; n_in < 40000; n_in += 37) {
    REQUIRE(device::slice_count(n_in) <= 8);
    REQUIRE(device::slice_length(n_in) % 256 == 0);
  }
}

}  // namespace leasehold::testing
