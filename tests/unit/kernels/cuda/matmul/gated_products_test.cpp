/// Gate and up in one launch that also gates and rounds their products: the bits of separate
/// launches, in any order of blocks.
#include <catch2/catch.hpp>

#include "kernels/cuda/plan/int8_plan.hpp"
#include "kernels/numerics/elementwise.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr cuda::DeviceProperties kCard{.n_sms = 1, .max_shared_bytes = 227 * 1024};
/// Its launches start early.
constexpr cuda::DeviceProperties kEarlyCard{
    .n_sms = 3, .max_shared_bytes = 227 * 1024, .starts_early = true};

/// Rounded rows in memory of their own.
struct RoundedBytes {
  RoundedBytes(std::uint32_t n_rows, std::uint32_t n_in, std::uint32_t block)
      : words(device::int8_rows_bytes(n_rows, n_in) / 8 + 1),
        rows(device::int8_rows_at(reinterpret_cast<std::byte*>(words.data()), n_rows, n_in,
                                  block)) {}
  std::vector<std::uint64_t> words;
  device::Int8Rows rows;
};

struct GateAndUp {
  GateAndUp(SeededRandom& random, TensorType type, std::uint32_t n_out_, std::uint32_t n_in,
            std::uint32_t n_rows_)
      : n_rows(n_rows_),
        n_out(n_out_),
        weights{groups_of(DeviceMatrix(random, type, n_out, n_in)),
                groups_of(DeviceMatrix(random, type, n_out, n_in))},
        bias(random_floats(random, n_out)),
        x(random_floats(random, std::size_t{n_rows} * n_in)),
        products(2, std::vector<float>(std::size_t{n_rows} * n_out)),
        rounded_x(n_rows, n_in, block_shape(type).elements) {
    step.n_rows = n_rows;
    for (int i = 0; i < 2; ++i)
      operands.push_back({.gate = {.mirror = &mirror, .step = &step, .rows = nullptr},
                          .type = type,
                          .layout = MatrixLayout::RowGroups,
                          .n_out = n_out,
                          .n_in = n_in,
                          .weights = weights[i].data(),
                          .x = x.data(),
                          .out = products[i].data(),
                          .bias = i == 0 ? bias.data() : nullptr,
                          .n_results = n_rows + 1});  // the plan is for more rows than the step has
  }

  void run(const device::GatedProducts& gated, std::uint64_t order_seed) {
    simt::set_order_seed(order_seed);
    for (const cuda::KernelLaunch& launch : cuda::plan_matmul(
             operands, {.tiles = {}, .rounded = rounded_x.rows, .gated = gated}, card)) {
      const auto result = simt::run(launch);
      if (!result) FAIL(result.error().detail);
    }
    simt::set_order_seed(0);
  }
  /// The reference: separate launches.
  void gate_and_round(Activation activation, const device::Int8Rows& rounded) {
    run({}, 0);
    for (std::size_t i = 0; i < products[0].size(); ++i)
      products[0][i] = gated(activation, products[0][i], products[1][i]);
    const auto result = simt::run(cuda::plan_round_rows(
        {.gate = operands[0].gate, .n_in = n_out, .x = products[0].data(), .n_results = n_rows},
        rounded));
    if (!result) FAIL(result.error().detail);
  }

  cuda::DeviceProperties card = kCard;
  std::uint32_t n_rows;
  std::uint32_t n_out;
  std::vector<std::byte> weights[2];
  std::vector<float> bias;
  std::vector<float> x;
  std::vector<std::vector<float>> products;
  RoundedBytes rounded_x;
  device::GateMirror mirror{};
  device::DeviceStep step{};
  std::vector<cuda::MatmulOperands> operands;
};

struct GatedShape {
  TensorType type;
  std::uint32_t n_out;
  std::uint32_t next_block;
  Activation activation;
};

/// A launch as GateAndUp::run runs it.
struct Launched {
  cuda::DeviceProperties card;
  std::uint64_t order_seed;
};
const Launched kLaunches[] = {
    {kCard, 0}, {kCard, simt::kDescendingOrder}, {kCard, 5}, {kEarlyCard, 0}, {kEarlyCard, 6}};

}  // namespace

TEST_CASE("cuda int8 matmul: gate and up in one launch are gated and rounded with the same bits") {
  SeededRandom random(29);
  for (const GatedShape& shape : {GatedShape{TensorType::Q8_0, 1056, 32, Activation::SwiGlu},
                                  GatedShape{TensorType::Q4_K, 768, 256, Activation::GeGlu},
                                  GatedShape{TensorType::Q5_1, 256, 256, Activation::SwiGlu}})
    for (const std::uint32_t n_rows : {1u, 2u, 7u}) {
      const std::uint32_t n_in = width_of(shape.type, 256);
      GateAndUp call(random, shape.type, shape.n_out, n_in, n_rows);
      CAPTURE(name(shape.type), shape.n_out, n_rows);
      REQUIRE(cuda::gates_products(call.operands, shape.next_block, kCard));
      RoundedBytes expected(n_rows, shape.n_out, shape.next_block);
      call.gate_and_round(shape.activation, expected.rows);
      const std::vector<float> gated = call.products[0];
      for (const Launched& launched : kLaunches) {
        call.card = launched.card;
        RoundedBytes rounded(n_rows, shape.n_out, shape.next_block);
        std::vector<std::uint32_t> counters(cuda::gate_counter_count(shape.n_out) + 1, 0);
        call.run({counters.data(), rounded.rows, shape.activation}, launched.order_seed);
        REQUIRE(first_difference(call.products[0], gated) == -1);
        REQUIRE(rounded.words == expected.words);
        REQUIRE(counters == std::vector<std::uint32_t>(counters.size(), 0));
      }
    }
}

TEST_CASE("cuda int8 matmul: after a stop and cleared counters gate and up have their bits") {
  SeededRandom random(30);
  GateAndUp call(random, TensorType::Q8_0, 544, 64, 2);
  RoundedBytes expected(2, 544, 32);
  call.gate_and_round(Activation::SwiGlu, expected.rows);
  std::vector<std::uint32_t> counters(cuda::gate_counter_count(544), 0);
  RoundedBytes rounded(2, 544, 32);
  struct Stopped {
    cuda::DeviceProperties card;
    std::uint64_t at_block;
    std::uint32_t arrivals;
  };
  // The first counter counts 64 groups; two of three early blocks compute 43 of them.
  const auto stopped = GENERATE(Stopped{kCard, 20, 20}, Stopped{kEarlyCard, 2, 43});
  call.card = stopped.card;
  simt::set_block_hook(
      [&](std::uint64_t i) { call.mirror.engine_stopped = i >= stopped.at_block ? 1 : 0; });
  call.run({counters.data(), rounded.rows, Activation::SwiGlu}, 0);
  simt::set_block_hook({});
  REQUIRE(counters[0] == stopped.arrivals);
  call.mirror.engine_stopped = 0;
  std::ranges::fill(counters, 0);  // as the host does after a stop
  call.run({counters.data(), rounded.rows, Activation::SwiGlu}, 0);
  REQUIRE(rounded.words == expected.words);
  REQUIRE(counters == std::vector<std::uint32_t>(counters.size(), 0));
}

TEST_CASE("cuda int8 matmul: only up to eight rows and matrices of one type gate their products") {
  SeededRandom random(31);
  const auto fits = [&](std::uint32_t n_rows, std::uint32_t n_out, std::uint32_t next_block) {
    GateAndUp call(random, TensorType::Q8_0, n_out, 64, n_rows - 1);
    return cuda::gates_products(call.operands, next_block, kCard);
  };
  REQUIRE(fits(8, 64, 32));
  REQUIRE_FALSE(fits(9, 64, 32));
  REQUIRE_FALSE(fits(8, 64, 256));  // a row is not whole blocks
  GateAndUp call(random, TensorType::Q8_0, 64, 64, 1);
  call.operands[1].type = TensorType::Q4_0;
  REQUIRE_FALSE(cuda::gates_products(call.operands, 32, kCard));
}

}  // namespace leasehold::testing
