/// Matmul on cards: a row's bits do not depend on other rows or on the chosen kernel.
#include <catch2/catch.hpp>

#include "kernels/numerics/ordered_sum.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kNumbers[] = {1, 2, 9, 17, 33, 64, 65, 200};

std::vector<float> row_of(const std::vector<float>& all, std::uint32_t row, std::uint32_t width) {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(row) * width;
  return {first, first + width};
}

/// Random rows with `x` at index `place`.
MatmulCall among(SeededRandom& random, const DeviceMatrix& weight, const std::vector<float>& x,
                 std::uint32_t n_rows, std::uint32_t place) {
  MatmulCall call = {.weight = &weight,
                     .x = random_floats(random, std::size_t{n_rows} * weight.n_in, 100.0F)};
  std::ranges::copy(x, call.x.begin() + static_cast<std::ptrdiff_t>(place) * weight.n_in);
  return call;
}

std::vector<RunOptions> every_way() {
  std::vector<RunOptions> ways;
  for (const std::uint32_t n_sms : {1, 2, 132})  // one part, two unequal ones, a part per slice
    for (const bool has_wgmma : {false, true})
      for (const std::uint32_t shared_kib : {64, 227})
        ways.push_back(
            {.card = {
                 .n_sms = n_sms, .max_shared_bytes = shared_kib * 1024, .has_wgmma = has_wgmma}});
  return ways;
}

}  // namespace

TEST_CASE("cuda matmul: a row has the same bits alone, among few rows and among many") {
  SeededRandom random(10);
  for (const TensorType type : kHalfTypes) {
    const DeviceMatrix weight(random, type, 21, width_of(type, 700));
    const std::vector<float> x = random_floats(random, weight.n_in);
    const std::vector<float> alone = run_matmul({.weight = &weight, .x = x});
    for (const std::uint32_t n_rows : kNumbers) {
      const std::uint32_t place = n_rows * 2 / 3;
      const MatmulCall call = among(random, weight, x, n_rows, place);
      RunOptions options;
      options.card.has_wgmma = true;
      const auto mine = row_of(run_matmul(call, options), place, weight.n_out);
      CAPTURE(name(type), n_rows);
      REQUIRE(first_difference(mine, alone) == -1);
    }
  }
}

TEST_CASE("cuda matmul: the bits are the same on every card, with every kernel, split or not") {
  SeededRandom random(11);
  for (const TensorType type : {TensorType::F16, TensorType::Q8_0, TensorType::Q4_K}) {
    const DeviceMatrix weight(random, type, 260, 2304);
    for (const std::uint32_t n_rows : {3, 70}) {
      MatmulCall call = {.weight = &weight,
                         .x = random_floats(random, std::size_t{n_rows} * weight.n_in)};
      call.bias = random_floats(random, weight.n_out);
      call.before = random_floats(random, std::size_t{n_rows} * weight.n_out);
      const std::vector<float> first = run_matmul(call, every_way().front());
      for (const RunOptions& way : every_way()) {
        CAPTURE(name(type), n_rows, way.card.n_sms, way.card.has_wgmma, way.card.max_shared_bytes);
        REQUIRE(first_difference(run_matmul(call, way), first) == -1);
      }
    }
  }
}

TEST_CASE("cuda matmul: matrices that share a launch have the bits of one launch each") {
  SeededRandom random(16);
  for (const TensorType type : {TensorType::F16, TensorType::Q4_K}) {
    // Row tiles: several, the last one not full; less than one; one.
    const DeviceMatrix q(random, type, 150, 768), k(random, type, 40, 768),
        v(random, type, 64, 768);
    for (const std::uint32_t n_rows : {3, 70}) {
      std::vector<MatmulCall> calls;
      const auto x = random_floats(random, std::size_t{n_rows} * q.n_in);
      for (const DeviceMatrix* weight : {&q, &k, &v}) {
        calls.push_back({.weight = weight, .x = x});
        if (weight != &k) calls.back().bias = random_floats(random, weight->n_out);
        if (n_rows == 3) calls.back().before = random_floats(random, 3 * weight->n_out);
      }
      for (const RunOptions& way : every_way()) {
        if (way.card.max_shared_bytes == 64 * 1024) continue;
        simt::set_order_seed(n_rows);
        const auto together = run_joined(calls, way);
        simt::set_order_seed(0);
        for (std::size_t i = 0; i < calls.size(); ++i) {
          CAPTURE(name(type), n_rows, i, way.card.n_sms, way.card.has_wgmma);
          REQUIRE(first_difference(together[i], run_matmul(calls[i], way)) == -1);
        }
      }
    }
  }
}

TEST_CASE("cuda matmul: the order in which blocks and threads run changes no bit") {
  SeededRandom random(12);
  const DeviceMatrix weight(random, TensorType::Q6_K, 70, 1280);
  const MatmulCall call = {.weight = &weight, .x = random_floats(random, 5 * weight.n_in)};
  RunOptions options;
  options.card.n_sms = 132;
  const std::vector<float> first = run_matmul(call, options);
  for (const std::uint64_t seed : {1, 2, 3}) {
    simt::set_order_seed(seed);
    const std::vector<float> again = run_matmul(call, options);
    simt::set_order_seed(0);
    REQUIRE(first_difference(again, first) == -1);
  }
}

TEST_CASE(
    "cuda matmul: selected rows have the bits of the full matmul, with or without prepared tiles") {
  SeededRandom random(13);
  for (const TensorType type : {TensorType::F32, TensorType::F16, TensorType::Q4_0}) {
    const DeviceMatrix weight(random, type, 30, 320);
    MatmulCall call = {.weight = &weight, .x = random_floats(random, 90 * weight.n_in)};
    const std::vector<float> all = run_matmul(call);
    call.select = {0, 7, 8, 31, 64, 89};
    for (const bool prepare_first : {false, true}) {
      const std::vector<float> some = run_matmul(call, {.prepare_first = prepare_first});
      for (std::uint32_t i = 0; i < call.select.size(); ++i)
        REQUIRE(first_difference(row_of(some, i, 30), row_of(all, call.select[i], 30)) == -1);
    }
  }
}

TEST_CASE("cuda matmul: an item has its expert's bits for any number of items") {
  SeededRandom random(14);
  constexpr std::uint32_t kExperts = 3, kOut = 20;
  for (const TensorType type : {TensorType::F32, TensorType::F16, TensorType::Q5_K})
    for (const std::uint32_t items_per_x : {1, 2})
      for (const std::uint32_t n_rows : {1, 5, 150}) {
        const DeviceMatrix weight(random, type, kExperts * kOut, 512);
        MatmulCall call = {.weight = &weight};
        for (std::uint32_t i = 0; i < n_rows * items_per_x; ++i)
          call.chosen.push_back(random.below(4) == 0 ? 1 : 2);
        call.x = random_floats(random, std::size_t{n_rows} * weight.n_in);
        call.n_experts = kExperts;
        call.items_per_x = items_per_x;
        const MatmulCall dense = {.weight = &weight, .x = call.x};
        const std::vector<float> all = run_matmul(dense);
        for (const RunOptions& way : {RunOptions{}, RunOptions{.card = {.has_wgmma = true}}}) {
          RunOptions options = way;
          options.card.max_shared_bytes = 227 * 1024;
          const std::vector<float> out = run_matmul(call, options);
          for (std::uint32_t i = 0; i < call.chosen.size(); ++i) {
            const auto row = row_of(all, i / items_per_x, weight.n_out);
            const auto expected = row_of(row, call.chosen[i], kOut);
            CAPTURE(name(type), items_per_x, n_rows, i);
            REQUIRE(first_difference(row_of(out, i, kOut), expected) == -1);
          }
        }
      }
}

TEST_CASE("cuda matmul: F32 weights give the CPU's bits") {
  SeededRandom random(15);
  for (const std::uint32_t n_in : {1, 31, 33, 300}) {
    const DeviceMatrix weight(random, TensorType::F32, 13, n_in);
    const MatmulCall call = {.weight = &weight, .x = random_floats(random, 11 * n_in)};
    std::vector<float> expected;
    for (std::uint32_t row = 0; row < 11; ++row)
      for (std::uint32_t output = 0; output < weight.n_out; ++output)
        expected.push_back(
            ordered_dot(weight.row(output).data(), call.x.data() + row * n_in, n_in));
    REQUIRE(first_difference(run_matmul(call), expected) == -1);
  }
}

}  // namespace leasehold::testing
