/// Rounding to int8 on a card has the bits of round_row, after every kernel that does it.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cuda/plan/int8_plan.hpp"
#include "kernels/cuda/plan/row_plan.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kRows = 3;
constexpr std::uint32_t kSpare = 2;
constexpr std::byte kUnwritten{0x5a};

/// Room for the rounded rows of a launch, with bytes behind it that no kernel may write.
struct RoundedMemory {
  RoundedMemory(std::uint32_t n_in_, std::uint32_t block_)
      : n_in(n_in_),
        block(block_),
        bytes(device::int8_rows_bytes(kRows + kSpare, n_in) + 64, kUnwritten) {}
  device::Int8Rows view() {
    return device::int8_rows_at(bytes.data(), kRows + kSpare, n_in, block);
  }

  std::uint32_t n_in;
  std::uint32_t block;
  std::vector<std::byte> bytes;
};

/// Stores sums of round_row as SplitSums.
void split(const device::Int8Rows& rows, std::size_t n_strips) {
  for (std::size_t strip = 0; strip < n_strips; strip += 4) {
    device::SplitSums sums;
    for (std::uint32_t i = 0; i < 4; ++i) sums.set(i, rows.sums[strip + i]);
    std::memcpy(rows.sums + strip, &sums, sizeof sums);
  }
}

/// What round_row stores for `n_rows` rows of x, in the same places.
RoundedMemory by_host(const std::vector<float>& x, std::uint32_t n_rows, std::uint32_t n_in,
                      std::uint32_t block) {
  RoundedMemory memory(n_in, block);
  const device::Int8Rows to = memory.view();
  for (std::uint32_t row = 0; row < n_rows; ++row)
    round_row(x.data() + std::size_t{row} * n_in, n_in, block,
              {.q = to.q + std::size_t{row} * n_in,
               .scale = to.scales + std::size_t{row} * (n_in / block),
               .sums = to.sums + std::size_t{row} * (n_in / kInt8Strip)});
  if (block != kMinInt8Block) split(to, std::size_t{n_rows} * (n_in / kInt8Strip));
  return memory;
}

cuda::MatmulOperands operands_of(const DeviceStep& step, const std::vector<float>& x,
                                 std::uint32_t n_in) {
  return {.gate = step.plan().gate,
          .n_in = n_in,
          .x = x.data(),
          .n_results = step.plan().n_rows,
          .count = {.is_logit_rows = 0, .per_row = 1}};
}

/// Rows of every magnitude, with zeros, halves between two steps, subnormal blocks, and blocks that
/// are not finite.
std::vector<float> hard_rows(SeededRandom& random, std::uint32_t n_in) {
  std::vector<float> x;
  for (std::uint32_t row = 0; row < kRows; ++row)
    for (std::uint32_t first = 0; first < n_in; first += kMinInt8Block) {
      const auto exponent = static_cast<int>(random.below(290)) - 145;
      for (float value : random_floats(random, kMinInt8Block))
        x.push_back(std::ldexp(value, exponent));
      float* const strip = x.data() + x.size() - kMinInt8Block;
      switch (random.below(6)) {
        case 0:
          std::fill_n(strip, kMinInt8Block, -0.0F);
          break;
        case 1:
          for (int i = 0; i < 32; ++i) strip[i] = static_cast<float>(i) - 16.5F;
          strip[31] = 127.0F;  // a scale of 1
          break;
        case 2:
          std::fill_n(strip, kMinInt8Block, 0.0F);
          strip[random.below(kMinInt8Block)] = random.below(2) == 0 ? 0x1p-119F : 0x1.fffffep-120F;
          break;
        default:
          break;
      }
    }
  return x;
}

}  // namespace

TEST_CASE("cuda rounding: plain rows have the host's bits for blocks of 32 and 256") {
  SeededRandom random(test_seed());
  for (const auto& [n_in, block] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {32, 32}, {288, 32}, {896, 32}, {2560, 32}, {256, 256}, {2304, 256}})
    for (int round = 0; round < 8; ++round) {
      CAPTURE(n_in, block, round, test_seed());
      DeviceStep step(rows_of({kRows}, {kRows}), 1, kSpare);
      const std::vector<float> x = hard_rows(random, n_in);
      RoundedMemory memory(n_in, block);
      step.run(cuda::plan_round_rows(operands_of(step, x, n_in), memory.view()),
               static_cast<std::uint64_t>(round));
      REQUIRE(memory.bytes == by_host(x, kRows, n_in, block).bytes);
    }
}

TEST_CASE("cuda rounding: split sums are exact up to the largest sum of two strips") {
  for (std::int32_t sum = -2 * 16 * 127; sum <= 2 * 16 * 127; ++sum) {
    device::SplitSums sums;
    sums.set(3, sum);
    REQUIRE(sums.high[3] * 128 + sums.low[3] == sum);
  }
}

TEST_CASE("cuda rounding: a NaN or an infinity anywhere gives its block a NaN and zeros") {
  SeededRandom random(test_seed());
  constexpr std::uint32_t kWidth = 512;
  for (const std::uint32_t block : {32u, 256u})
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
      DeviceStep step(rows_of({kRows}, {kRows}), 1, kSpare);
      auto x = random_floats(random, std::size_t{kRows} * kWidth);
      const auto at = kWidth + static_cast<std::uint32_t>(random.below(kWidth));
      x[at] = bad;
      CAPTURE(block, bad, at, test_seed());
      RoundedMemory memory(kWidth, block);
      step.run(cuda::plan_round_rows(operands_of(step, x, kWidth), memory.view()));
      REQUIRE(std::isnan(memory.view().scales[at / block]));
      REQUIRE(memory.bytes == by_host(x, kRows, kWidth, block).bytes);
    }
}

TEST_CASE("cuda rounding: selected rows are rounded in the order of their results") {
  SeededRandom random(test_seed());
  constexpr std::uint32_t kWidth = 96;
  DeviceStep step(rows_of({kRows}, {kRows}), 1, kSpare);
  step.step.n_logit_rows = 2;
  const std::vector<std::uint32_t> select{0, 2};
  const auto x = random_floats(random, kRows * std::size_t{kWidth});
  cuda::MatmulOperands operands = operands_of(step, x, kWidth);
  operands.select = select.data();
  operands.count.is_logit_rows = 1;
  RoundedMemory memory(kWidth, 32);
  step.run(cuda::plan_round_rows(operands, memory.view()));
  auto selected = x;
  std::copy_n(x.begin() + 2 * kWidth, kWidth, selected.begin() + kWidth);
  REQUIRE(memory.bytes == by_host(selected, 2, kWidth, 32).bytes);
}

TEST_CASE("cuda rounding: a norm stores its output and the rounded output") {
  SeededRandom random(test_seed());
  for (const auto& [n_in, block] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {64, 32}, {896, 32}, {5120, 32}, {12544, 32}, {512, 256}, {5120, 256}, {12544, 256}}) {
    CAPTURE(n_in, block, test_seed());
    DeviceStep step(rows_of({kRows}, {kRows}), 1, kSpare);
    const auto x = random_floats(random, std::size_t{kRows} * n_in, 3.0F);
    LeasedMemory gain(n_in * sizeof(float));
    gain.fill<float>(random_floats(random, n_in));
    std::vector<float> expected(x.size());
    auto out = expected;
    RmsNormArgs args{.site = LaunchSite::FfnNorm,
                     .x = x.data(),
                     .weight = gain.at().as<const float>(),
                     .out = expected.data(),
                     .width = n_in,
                     .epsilon = 1e-5F};
    step.reference().rms_norm(step.context(), args);
    args.out = out.data();
    RoundedMemory memory(n_in, block);
    step.run(cuda::plan_rms_norm(step.plan(), args,
                                 {.weight = reinterpret_cast<const float*>(gain.bytes())},
                                 {.rounded = memory.view()}),
             6);
    REQUIRE(first_difference(out, expected) == -1);
    REQUIRE(memory.bytes == by_host(expected, kRows, n_in, block).bytes);
  }
}

TEST_CASE("cuda rounding: a gate stores its output and the rounded output, in any blocks") {
  SeededRandom random(test_seed());
  for (const auto& [n_in, block] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {32, 32}, {608, 32}, {4864, 32}, {256, 256}, {2816, 256}}) {
    CAPTURE(n_in, block, test_seed());
    DeviceStep step(rows_of({kRows}, {kRows}), 1, kSpare);
    auto out = random_floats(random, std::size_t{kRows} * n_in, 20.0F);
    const auto up = random_floats(random, out.size(), 2.0F);
    auto expected = out;
    step.reference().swiglu(step.context(), {expected.data(), up.data(), n_in});
    RoundedMemory memory(n_in, block);
    step.run(
        cuda::plan_swiglu(step.plan(), {out.data(), up.data(), n_in}, {.rounded = memory.view()}),
        3);
    REQUIRE(first_difference(out, expected) == -1);
    REQUIRE(memory.bytes == by_host(expected, kRows, n_in, block).bytes);
  }
}

TEST_CASE("cuda rounding: on a stopped engine nothing is rounded") {
  SeededRandom random(test_seed());
  DeviceStep step(rows_of({kRows}, {kRows}), 1, kSpare);
  step.mirror.engine_stopped = 1;
  const auto x = random_floats(random, kRows * std::size_t{64});
  RoundedMemory memory(64, 32);
  step.run(cuda::plan_round_rows(operands_of(step, x, 64), memory.view()));
  REQUIRE(memory.bytes == RoundedMemory(64, 32).bytes);
}

}  // namespace leasehold::testing
