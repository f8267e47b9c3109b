/// Matmul of row groups with wgmma has the bits of dot_group_int8, for every type that has these
/// kernels and every shape.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "kernels/cuda/device/int8/int8_units.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/kernels/cuda/matmul/host_matmul.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kManyRowCounts[] = {9, 16, 31, 32, 33, 64, 127, 128, 129, 512};
/// Chunks of one block (seven, one or none are empty), of two blocks and of six; for blocks of 32
/// also units that a chunk or a row ends within.
constexpr std::uint32_t kManyWidths[] = {1, 7, 8, 9, 43};
constexpr std::uint32_t kManyParts[] = {1, 2, 4, 8};
/// Copies and products complete late or early.
constexpr std::uint64_t kManyOrders[] = {0, 2, simt::kDescendingOrder, 5};

std::vector<TensorType> many_types() {
  std::vector<TensorType> types;
  for (const TensorType type : kEveryType)
    if (has_row_groups(type) && device::has_int8_many(type)) types.push_back(type);
  return types;
}

/// A card on which a launch of n_blocks blocks of up to 64 columns is split into `parts`.
RunOptions with_wgmma(std::uint32_t parts = 1, std::uint32_t n_blocks = 1) {
  return {.card = {.n_sms = (parts * n_blocks + 1) / 2,
                   .max_shared_bytes = 227 * 1024,
                   .has_wgmma = true}};
}

struct ManyCase {
  TensorType type;
  std::uint32_t n_rows;
  std::uint32_t n_out;
  std::uint32_t n_blocks;
  std::uint32_t parts;
  std::uint64_t order;
};

void check_many(SeededRandom& random, const ManyCase& one) {
  const DeviceMatrix weight(random, one.type, one.n_out,
                            one.n_blocks * block_shape(one.type).elements);
  MatmulCall call = random_call(random, weight, one.n_rows);
  call.is_grouped = true;
  RunOptions options = with_wgmma(one.parts);
  options.spare = static_cast<std::uint32_t>(random.below(5));
  CAPTURE(name(one.type), one.n_rows, one.n_out, one.n_blocks, one.parts, one.order,
          call.select.size(), options.spare);
  simt::set_order_seed(one.order);
  const std::vector<float> out = run_matmul(call, options);
  simt::set_order_seed(0);
  REQUIRE(first_difference(out, int8_by_host(call)) == -1);
}

}  // namespace

TEST_CASE("cuda int8 matmul: products with wgmma have the host's bits") {
  SeededRandom random(41);
  std::size_t i = 0;
  for (const TensorType type : many_types())
    for (const std::uint32_t n_rows : kManyRowCounts) {
      check_many(random, {.type = type,
                          .n_rows = n_rows,
                          .n_out = i % 3 == 0 ? 131u : 17u,
                          .n_blocks = kManyWidths[i % (n_rows < 64 ? 5 : 4)],
                          .parts = kManyParts[i % std::size(kManyParts)],
                          .order = kManyOrders[i / 3 % std::size(kManyOrders)]});
      ++i;
    }
}

TEST_CASE("cuda int8 matmul: products with wgmma of every shape have the host's bits", "[.long]") {
  SeededRandom random(42);
  std::size_t i = 0;
  for (const TensorType type : many_types())
    for (const std::uint32_t n_rows : kManyRowCounts)
      for (const std::uint32_t n_blocks : kManyWidths) {
        check_many(random, {.type = type,
                            .n_rows = n_rows,
                            .n_out = 17,
                            .n_blocks = n_blocks,
                            .parts = kManyParts[i % std::size(kManyParts)],
                            .order = kManyOrders[i / 4 % std::size(kManyOrders)]});
        ++i;
      }
}

TEST_CASE("cuda int8 matmul: with wgmma, large sums, zero rows and rows that are not finite") {
  SeededRandom random(43);
  for (const TensorType type : many_types()) {
    const DeviceMatrix weight(random, type, 20, 512);
    MatmulCall call = {.weight = &weight,
                       .is_grouped = true,
                       .x = std::vector<float>(std::size_t{12} * weight.n_in, 127.0F)};
    std::fill_n(call.x.begin() + 2 * weight.n_in, weight.n_in, -0.0F);
    call.x[3 * weight.n_in + 40] = std::numeric_limits<float>::infinity();
    const std::vector<float> out = run_matmul(call, with_wgmma());
    const std::vector<float> expected = int8_by_host(call);
    CAPTURE(name(type));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool is_bad_row = i / weight.n_out == 3;
      REQUIRE((is_bad_row ? std::isnan(out[i]) && std::isnan(expected[i])
                          : std::bit_cast<std::uint32_t>(out[i]) ==
                                std::bit_cast<std::uint32_t>(expected[i])));
    }
  }
}

TEST_CASE("cuda int8 matmul: with wgmma joined matmuls and experts have their own results") {
  SeededRandom random(44);
  const DeviceMatrix q(random, TensorType::Q4_K, 131, 9 * 256);
  const DeviceMatrix k(random, TensorType::Q4_K, 17, 9 * 256);
  const auto x = random_floats(random, std::size_t{40} * q.n_in);
  const std::vector<MatmulCall> calls = {
      {.weight = &q, .is_grouped = true, .x = x, .bias = random_floats(random, 131)},
      {.weight = &k, .is_grouped = true, .x = x}};
  const auto together = run_joined(calls, with_wgmma(4, 3));
  for (std::size_t i = 0; i < calls.size(); ++i)
    REQUIRE(first_difference(together[i], int8_by_host(calls[i])) == -1);

  constexpr std::uint32_t kExperts = 3;
  const DeviceMatrix experts(random, TensorType::Q5_K, kExperts * 32, 512);
  MatmulCall call = {.weight = &experts,
                     .is_grouped = true,
                     .x = random_floats(random, std::size_t{90} * experts.n_in),
                     .n_experts = kExperts};
  for (std::uint32_t item = 0; item < 90; ++item)
    call.chosen.push_back(static_cast<std::uint32_t>(random.below(item < 70 ? 2 : kExperts)));
  REQUIRE(first_difference(run_matmul(call, with_wgmma()), int8_by_host(call)) == -1);
}

TEST_CASE("cuda int8 matmul: with wgmma, after some blocks stop, the next step has the same bits") {
  SeededRandom random(45);
  const DeviceMatrix weight(random, TensorType::Q6_K, 17, 9 * 256);
  MatmulCall call = {
      .weight = &weight, .is_grouped = true, .x = random_floats(random, 33 * weight.n_in)};
  RunOptions options = with_wgmma(8);
  options.stopped_after_blocks = 3;
  REQUIRE(first_difference(run_matmul(call, options), int8_by_host(call)) == -1);
  call.before = random_floats(random, std::size_t{33} * weight.n_out);
  options = with_wgmma();
  options.is_stopped = true;
  REQUIRE(first_difference(run_matmul(call, options), call.before) == -1);
}

}  // namespace leasehold::testing
