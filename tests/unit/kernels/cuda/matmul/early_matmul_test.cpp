/// Int8 matmuls that start before the previous kernel has ended have the bits of dot_group_int8,
/// with and without the norm of their rows.
#include <catch2/catch.hpp>

#include "tests/support/simt/runner.hpp"
#include "tests/unit/kernels/cuda/matmul/host_matmul.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kEarlyRows[] = {1, 2, 7, 8};
/// Chunks of one block (seven, one or none are empty), of two blocks (three are empty), and of six
/// (the last one has one).
constexpr std::uint32_t kEarlyWidths[] = {1, 7, 8, 9, 43};
/// Ascending with late copies, descending with early ones, and permuted with early and late ones.
constexpr std::uint64_t kEarlyOrders[] = {0, simt::kDescendingOrder, 5, 6};

cuda::DeviceProperties early_card(std::uint32_t n_sms) {
  return {.n_sms = n_sms, .max_shared_bytes = 227 * 1024, .starts_early = true};
}

/// One launch of a matrix of a few groups: on one SM a block loops over all or half of them.
struct EarlyCase {
  std::uint32_t n_rows;
  std::uint32_t n_blocks;  ///< Of a row.
  std::uint64_t order;
  bool has_norm;
};

/// The rows of a norm must fit a block's shared memory.
constexpr std::uint32_t kWidestNorm = 4096;

void check_early(SeededRandom& random, TensorType type, EarlyCase one) {
  const DeviceMatrix weight(random, type, 40, one.n_blocks * block_shape(type).elements);
  MatmulCall call = random_call(random, weight, one.n_rows);
  call.is_grouped = true;
  one.has_norm = one.has_norm && weight.n_in <= kWidestNorm;
  if (one.has_norm) {
    call.select.clear();
    call.before.clear();
    call.norm_weight = random_floats(random, weight.n_in);
  }
  RunOptions options{.card = early_card(1), .has_predecessor = true};
  options.prepare_first = !one.has_norm && random.below(2) == 0;
  options.spare = one.n_rows == 8 ? 0 : static_cast<std::uint32_t>(random.below(2));
  CAPTURE(name(type), one.n_rows, one.n_blocks, one.order, one.has_norm, call.select.size());
  simt::set_order_seed(one.order);
  const std::vector<float> out = run_matmul(call, options);
  simt::set_order_seed(0);
  REQUIRE(first_difference(out, int8_by_host(call)) == -1);
}

}  // namespace

TEST_CASE("cuda early matmul: every type has the host's bits, with a norm or without") {
  SeededRandom random(41);
  std::size_t i = 0;
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t n_blocks : kEarlyWidths) {
      check_early(random, type,
                  {.n_rows = kEarlyRows[i % std::size(kEarlyRows)],
                   .n_blocks = n_blocks,
                   .order = kEarlyOrders[i / 2 % std::size(kEarlyOrders)],
                   .has_norm = i / 4 % 2 == 0});
      ++i;
    }
}

TEST_CASE("cuda early matmul: every number of rows and blocks and every order has the host's bits",
          "[.long]") {
  SeededRandom random(42);
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t n_rows : kEarlyRows)
      for (const std::uint32_t n_blocks : kEarlyWidths)
        for (const std::uint64_t order : kEarlyOrders)
          for (const bool has_norm : {false, true})
            check_early(random, type, {n_rows, n_blocks, order, has_norm});
}

TEST_CASE("cuda early matmul: joined matrices share the blocks of a launch") {
  SeededRandom random(43);
  const DeviceMatrix q(random, TensorType::Q4_K, 100, 9 * 256);
  const DeviceMatrix k(random, TensorType::Q4_K, 17, 9 * 256);
  for (const std::uint32_t n_sms : {1u, 3u, 132u}) {
    const auto x = random_floats(random, 2 * q.n_in);
    const auto norm = random_floats(random, q.n_in);
    const std::vector<MatmulCall> calls = {
        {.weight = &q, .is_grouped = true, .x = x, .norm_weight = norm},
        {.weight = &k, .is_grouped = true, .x = x, .norm_weight = norm}};
    const auto together = run_joined(calls, {.card = early_card(n_sms), .has_predecessor = true});
    for (std::size_t i = 0; i < calls.size(); ++i) {
      CAPTURE(n_sms, i);
      REQUIRE(first_difference(together[i], int8_by_host(calls[i])) == -1);
    }
  }
}

TEST_CASE("cuda early matmul: a launch stores nothing after a stop, before or after the wait") {
  SeededRandom random(44);
  struct Stopped {
    TensorType type;
    std::uint32_t n_in;
    std::uint32_t n_rows;
    bool has_norm;
  };
  // Rows of x that fit shared memory, their norm, and rows that pass through the rings.
  const auto stopped = GENERATE(Stopped{TensorType::Q8_0, 43 * 32, 2, false},
                                Stopped{TensorType::Q8_0, 43 * 32, 2, true},
                                Stopped{TensorType::Q4_K, 43 * 256, 3, false});
  const bool stops_late = GENERATE(false, true);
  const DeviceMatrix weight(random, stopped.type, 40, stopped.n_in);
  MatmulCall call = {.weight = &weight,
                     .is_grouped = true,
                     .x = random_floats(random, std::size_t{stopped.n_rows} * stopped.n_in)};
  call.before = random_floats(random, std::size_t{stopped.n_rows} * weight.n_out);
  if (stopped.has_norm) call.norm_weight = random_floats(random, weight.n_in);
  // Weights are in flight when the stop comes late.
  const std::vector<float> out = run_matmul(call, {.card = early_card(1),
                                                   .has_predecessor = true,
                                                   .is_stopped = true,
                                                   .stops_late = stops_late});
  REQUIRE(first_difference(out, call.before) == -1);
}

TEST_CASE("cuda early matmul: an engine that goes on before the wait gets every product") {
  SeededRandom random(45);
  const DeviceMatrix weight(random, TensorType::Q6_K, 70, 9 * 256);
  const MatmulCall call = {
      .weight = &weight, .is_grouped = true, .x = random_floats(random, 3 * weight.n_in)};
  const std::vector<float> out =
      run_matmul(call, {.card = early_card(1), .has_predecessor = true, .goes_on_late = true});
  REQUIRE(first_difference(out, int8_by_host(call)) == -1);
}

TEST_CASE(
    "cuda early matmul: the epoch that a launch reports is that of the mirror after its wait") {
  SeededRandom random(46);
  const DeviceMatrix weight(random, TensorType::Q8_0, 70, 64);
  const MatmulCall call = {
      .weight = &weight, .is_grouped = true, .x = random_floats(random, weight.n_in)};
  std::uint64_t seen = 0;
  (void)run_matmul(call, {.card = early_card(1), .has_predecessor = true, .tenant_seen = &seen});
  REQUIRE(seen == kEpochOfMirror);
}

}  // namespace leasehold::testing
