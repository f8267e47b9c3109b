/// Matmul of row groups on cards has the bits of dot_group_int8, for every type, kernel and shape;
/// and exact rows have those of ordered_dot.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "kernels/numerics/ordered_sum.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/kernels/cuda/matmul/host_matmul.hpp"

namespace leasehold::testing {
namespace {

std::uint32_t below(SeededRandom& random, std::uint32_t n) {
  return static_cast<std::uint32_t>(random.below(n));
}

/// One or two rows, up to 8, up to 32, up to 64, and more.
constexpr std::uint32_t kRowCounts[] = {1, 2, 3, 8, 9, 32, 37, 64, 70};

/// One launch of a matrix: its rows of x, the parts of its chunks, its width in blocks, and the
/// order in which its blocks run.
struct SplitCase {
  std::uint32_t n_rows;
  std::uint32_t parts;
  std::uint32_t n_blocks;
  std::uint64_t order;
};

constexpr std::uint32_t kSplitRows[] = {1, 2, 7, 8, 9, 31, 32, 33, 64};
constexpr std::uint32_t kParts[] = {1, 2, 4, 8};
/// Chunks of one block (seven, one or none are empty), of two blocks (three are empty), and of six
/// (the last one has one).
constexpr std::uint32_t kSplitWidths[] = {1, 7, 8, 9, 43};
constexpr std::uint64_t kOrders[] = {0, simt::kDescendingOrder, 6};

void check_split(SeededRandom& random, TensorType type, const SplitCase& one) {
  const DeviceMatrix weight(random, type, 17, one.n_blocks * block_shape(type).elements);
  MatmulCall call = random_call(random, weight, one.n_rows);
  call.is_grouped = true;
  RunOptions options;
  options.card.n_sms = one.parts / 2;  // a launch of one block gives each SM two
  CAPTURE(name(type), one.n_rows, one.parts, one.n_blocks, one.order, call.select.size());
  simt::set_order_seed(one.order);
  const std::vector<float> out = run_matmul(call, options);
  simt::set_order_seed(0);
  REQUIRE(first_difference(out, int8_by_host(call)) == -1);
}

}  // namespace

TEST_CASE("cuda int8 matmul: blocks that share the chunks of a row have the host's bits") {
  SeededRandom random(29);
  std::size_t i = 0;
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t parts : kParts)
      for (const std::uint32_t n_blocks : kSplitWidths) {
        check_split(random, type,
                    {.n_rows = kSplitRows[i % std::size(kSplitRows)],
                     .parts = parts,
                     .n_blocks = n_blocks,
                     .order = kOrders[i % std::size(kOrders)]});
        ++i;
      }
}

TEST_CASE("cuda int8 matmul: every number of rows, parts and blocks has the host's bits",
          "[.long]") {
  SeededRandom random(30);
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t n_rows : kSplitRows)
      for (const std::uint32_t parts : kParts)
        for (const std::uint32_t n_blocks : kSplitWidths)
          for (const std::uint64_t order : kOrders)
            check_split(random, type, {n_rows, parts, n_blocks, order});
}

TEST_CASE("cuda int8 matmul: joined matmuls and blocks of columns share no part") {
  SeededRandom random(31);
  const DeviceMatrix q(random, TensorType::Q4_K, 100, 9 * 256);
  const DeviceMatrix k(random, TensorType::Q4_K, 17, 9 * 256);
  for (const std::uint32_t n_rows : {20u, 70u}) {
    const auto x = random_floats(random, std::size_t{n_rows} * q.n_in);
    const std::vector<MatmulCall> calls = {{.weight = &q, .is_grouped = true, .x = x},
                                           {.weight = &k, .is_grouped = true, .x = x}};
    RunOptions options;
    options.card.n_sms = 9;  // three tiles, or six
    const auto together = run_joined(calls, options);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      CAPTURE(n_rows, i);
      REQUIRE(first_difference(together[i], int8_by_host(calls[i])) == -1);
    }
  }
}

TEST_CASE("cuda int8 matmul: when some blocks of a launch stop, the next step has the same bits") {
  SeededRandom random(32);
  const DeviceMatrix weight(random, TensorType::Q4_K, 17, 9 * 256);
  const MatmulCall call = {
      .weight = &weight, .is_grouped = true, .x = random_floats(random, 9 * weight.n_in)};
  RunOptions options;
  options.card.n_sms = 4;  // eight blocks
  options.stopped_after_blocks = 3;
  REQUIRE(first_difference(run_matmul(call, options), int8_by_host(call)) == -1);
}

TEST_CASE("cuda int8 matmul: every type, kernel, shape and option has the host's bits") {
  SeededRandom random(21);
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t n_rows : kRowCounts) {
      const std::uint32_t block = block_shape(type).elements;
      // Chunks of no block, of one, of several, and a shorter last one.
      const std::uint32_t n_blocks = 1 + below(random, block == 32 ? 28 : 11);
      const DeviceMatrix weight(random, type, 1 + below(random, 50), n_blocks * block);
      RunOptions options;
      options.prepare_first = below(random, 2) == 0;
      options.spare = below(random, 5);
      MatmulCall call = random_call(random, weight, n_rows);
      call.is_grouped = true;
      CAPTURE(name(type), n_rows, n_blocks, weight.n_out, call.select.size(), options.spare);
      simt::set_order_seed(random.below(8));
      const std::vector<float> out = run_matmul(call, options);
      simt::set_order_seed(0);
      REQUIRE(first_difference(out, int8_by_host(call)) == -1);
    }
}

TEST_CASE(
    "cuda int8 matmul: chunks that pass through their ring several times have the host's bits") {
  SeededRandom random(28);
  for (const TensorType type :
       {TensorType::Q8_0, TensorType::Q5_1, TensorType::Q4_K, TensorType::Q6_K})
    for (const std::uint32_t n_rows : {1u, 2u, 8u, 33u})
      for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {  // copies arrive late or early
        const std::uint32_t block = block_shape(type).elements;
        // Chunks of 18 blocks are five units of a ring of three, chunks of 5 five of a ring of two.
        const DeviceMatrix weight(random, type, 17, (block == 32 ? 141 : 37) * block);
        const MatmulCall call = {.weight = &weight,
                                 .is_grouped = true,
                                 .x = random_floats(random, std::size_t{n_rows} * weight.n_in)};
        CAPTURE(name(type), n_rows, seed);
        simt::set_order_seed(seed);
        const std::vector<float> out = run_matmul(call);
        simt::set_order_seed(0);
        REQUIRE(first_difference(out, int8_by_host(call)) == -1);
      }
}

TEST_CASE("cuda int8 matmul: experts multiply their own items, few and many") {
  SeededRandom random(22);
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t n_items : {2u, 12u, 120u}) {
      constexpr std::uint32_t kExperts = 3, kUsed = 2;
      const DeviceMatrix weight(random, type, kExperts * 32, width_of(type, 300));
      const bool by_row = below(random, 2) == 0;
      MatmulCall call = {
          .weight = &weight,
          .is_grouped = true,
          .x = random_floats(random, std::size_t{by_row ? n_items / kUsed : n_items} * weight.n_in),
          .n_experts = kExperts,
          .items_per_x = by_row ? kUsed : 1};
      for (std::uint32_t item = 0; item < n_items; ++item)
        call.chosen.push_back(below(random, kExperts));
      CAPTURE(name(type), n_items, by_row);
      REQUIRE(first_difference(run_matmul(call), int8_by_host(call)) == -1);
    }
}

TEST_CASE("cuda int8 matmul: joined matmuls have the bits of one launch each") {
  SeededRandom random(23);
  for (const std::uint32_t n_rows : {1u, 20u}) {
    const DeviceMatrix q(random, TensorType::Q5_0, 40, 288);
    const DeviceMatrix k(random, TensorType::Q5_0, 17, 288);
    const auto x = random_floats(random, std::size_t{n_rows} * 288);
    const std::vector<MatmulCall> calls = {
        {.weight = &q, .is_grouped = true, .x = x, .bias = random_floats(random, 40)},
        {.weight = &k, .is_grouped = true, .x = x},
        {.weight = &k, .is_grouped = true, .x = x}};
    const auto together = run_joined(calls);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      CAPTURE(n_rows, i);
      REQUIRE(first_difference(together[i], int8_by_host(calls[i])) == -1);
    }
  }
}

TEST_CASE("cuda int8 matmul: large magnitudes, zero rows and rows that are not finite") {
  SeededRandom random(24);
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t n_rows : {2u, 4u}) {
      const DeviceMatrix weight(random, type, 20, 512);
      MatmulCall call = {.weight = &weight,
                         .is_grouped = true,
                         .x = random_floats(random, std::size_t{n_rows} * weight.n_in, 1e30F)};
      // The largest sums, beyond 2^24 for blocks of 256.
      for (std::uint32_t i = 0; i < weight.n_in; ++i) call.x[i] = i % 2 == 0 ? 127.0F : 126.0F;
      if (n_rows == 4) {
        std::fill_n(call.x.begin() + 2 * weight.n_in, weight.n_in, -0.0F);
        call.x[3 * weight.n_in + 40] = std::numeric_limits<float>::infinity();
      }
      const std::vector<float> out = run_matmul(call);
      const std::vector<float> expected = int8_by_host(call);
      CAPTURE(name(type), n_rows);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const bool is_bad_row = i / weight.n_out == 3;
        REQUIRE((is_bad_row ? std::isnan(out[i]) && std::isnan(expected[i])
                            : std::bit_cast<std::uint32_t>(out[i]) ==
                                  std::bit_cast<std::uint32_t>(expected[i])));
      }
    }
}

TEST_CASE("cuda int8 matmul: one or two rows use dp4a, more use mma; x is rounded once") {
  SeededRandom random(25);
  const DeviceMatrix weight(random, TensorType::Q4_K, 40, 256);
  using Names = std::vector<std::string>;
  const auto kernels = [&](std::uint32_t n_rows, bool is_prepared) {
    return kernels_of({.weight = &weight,
                       .is_grouped = true,
                       .x = random_floats(random, std::size_t{n_rows} * weight.n_in)},
                      {.prepare_first = is_prepared});
  };
  CHECK(kernels(1, false) == Names{"lh_round_rows", "lh_matmul_int8_q4_k_1"});
  CHECK(kernels(2, true) == Names{"lh_matmul_int8_q4_k_2"});
  CHECK(kernels(3, true) == Names{"lh_matmul_int8_q4_k_8"});
  CHECK(kernels(9, true) == Names{"lh_matmul_int8_q4_k_32"});
  CHECK(kernels(33, true) == Names{"lh_matmul_int8_q4_k_64"});
  CHECK(kernels(100, true) == Names{"lh_matmul_int8_q4_k_64"});
}

TEST_CASE("cuda int8 matmul: after the engine is stopped no kernel changes anything") {
  SeededRandom random(26);
  for (const std::uint32_t n_rows : {1u, 5u}) {
    const DeviceMatrix weight(random, TensorType::Q4_0, 40, 256);
    MatmulCall call = {.weight = &weight,
                       .is_grouped = true,
                       .x = random_floats(random, std::size_t{n_rows} * weight.n_in)};
    call.before = random_floats(random, std::size_t{n_rows} * weight.n_out);
    REQUIRE(first_difference(run_matmul(call, {.is_stopped = true}), call.before) == -1);
  }
}

TEST_CASE("cuda matmul: exact rows of any type have the bits of the host's ordered dot") {
  SeededRandom random(27);
  for (const TensorType type : kEveryType)
    for (const std::uint32_t n_rows : {1u, 11u}) {
      const DeviceMatrix weight(random, type, 1 + below(random, 20), width_of(type, 300));
      MatmulCall call = random_call(random, weight, n_rows);
      call.is_exact = true;
      const std::vector<float> out = run_matmul(call);
      CAPTURE(name(type), n_rows);
      for (std::uint32_t result = 0; result < call.n_results(); ++result)
        for (std::uint32_t output = 0; output < weight.n_out; ++output) {
          const float* x = call.x.data() + std::size_t{source_of(call, result)} * weight.n_in;
          const float dot = ordered_dot(weight.row(output).data(), x, weight.n_in);
          REQUIRE(out[std::size_t{result} * weight.n_out + output] ==
                  result_of(call, result, output, dot));
        }
    }
}

}  // namespace leasehold::testing
