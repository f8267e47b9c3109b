/// Matmuls in int8 arithmetic: the written order everywhere, near the exact product.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/contract/backend/matmul_cases.hpp"
#include "tests/support/child_process.hpp"

namespace leasehold::testing {
namespace {

constexpr int kInt8Shapes = 60;

constexpr TensorType kInt8Types[] = {
    TensorType::Q4_0,   TensorType::Q4_1,   TensorType::Q5_0, TensorType::Q5_1, TensorType::Q8_0,
    TensorType::Q2_K,   TensorType::Q3_K,   TensorType::Q4_K, TensorType::Q5_K, TensorType::Q6_K,
    TensorType::IQ4_NL, TensorType::IQ4_XS, TensorType::MXFP4};

/// More than eight blocks, so that some chunks have several.
std::uint32_t most_blocks(TensorType type) {
  return group_format(type).elements == kMinInt8Block ? 30 : kLimits.max_width / 256;
}

using Int8Case = MatmulCase<GroupedMatrix>;
using Int8Experts = ExpertsCase<GroupedMatrix>;

Int8Case random_matmul(SeededRandom& random, TensorType type) {
  const auto n_out = static_cast<std::uint32_t>(1 + random.below(70));
  const auto n_blocks = static_cast<std::uint32_t>(1 + random.below(most_blocks(type)));
  return {random, GroupedMatrix(random, type, n_out, n_blocks * group_format(type).elements)};
}

/// The exact product, and how far rounding the activations may move it: half a step of each block
/// times its weights, and the roundings of the sums.
std::pair<double, double> expected_dot(const Int8Case& c, std::size_t i, std::uint32_t output) {
  const auto [before, bias] = c.added_to(i, output);
  double sum = before + bias;
  double slack = std::abs(sum) * 0x1p-22;
  const std::uint32_t block = group_format(c.weight.rows.type).elements;
  for (std::uint32_t begin = 0; begin < c.n_in; begin += block) {
    double largest = 0;
    double weights = 0;
    for (std::uint32_t k = begin; k < begin + block; ++k) {
      const double value = c.x_of(i)[k];
      largest = std::max(largest, std::abs(value));
      weights += std::abs(c.weight.rows.at(output, k));
      sum += c.weight.rows.at(output, k) * value;
    }
    slack += weights * largest * (0.5001 / 127 + c.n_in * 0x1p-24);
  }
  return {sum, slack};
}

Int8Experts random_experts(SeededRandom& random, TensorType type) {
  const auto n_experts = static_cast<std::uint32_t>(1 + random.below(8));
  const auto n_out = static_cast<std::uint32_t>(1 + random.below(3)) * kGroupRows;
  const auto n_in = 256 * static_cast<std::uint32_t>(1 + random.below(2));
  return {random, n_experts, GroupedMatrix(random, type, n_experts * n_out, n_in)};
}

WeightMatrix matrix_of(const Int8Experts& c, std::uint32_t expert) {
  WeightMatrix matrix = c.weight.view();
  matrix.n_out = c.n_out;
  matrix.data = c.weight.memory.at(expert * (c.n_out / kGroupRows) *
                                   row_group_bytes(matrix.type, matrix.n_in));
  return matrix;
}

/// A Q4_K matrix of one block, with a scale of 1 and no minimum. The elements of sub-block 6 are 8
/// and those of sub-block 7 are 1; all others are 15.
struct SuperBlock {
  explicit SuperBlock(const std::array<unsigned, 8>& scales)
      : memory(row_group_bytes(TensorType::Q4_K, 256)) {
    std::array<unsigned, 144> row{};
    row[1] = 0x3C;  // the half 1.0
    for (unsigned s = 0; s < 4; ++s) {
      row[4 + s] = scales[s] | scales[s + 4] >> 4 << 6;
      row[12 + s] = scales[s + 4] & 15;
    }
    std::fill_n(row.begin() + 16, 96, 0xFFu);
    std::fill_n(row.begin() + 112, 32, 0x18u);
    std::array<std::byte, 144> bytes{};
    std::ranges::transform(row, bytes.begin(), [](unsigned b) { return std::byte(b); });
    interleave_rows(TensorType::Q4_K, bytes.data(), 1, 256, memory.bytes());
  }
  WeightMatrix view() const {
    return {TensorType::Q4_K, MatrixLayout::RowGroups, 1, 256, memory.at()};
  }

  LeasedMemory memory;
};

}  // namespace

TEST_CASE("int8: a matmul has the reference's bits for every type, shape and selection") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed());
  CAPTURE(threads, test_seed());
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < 2 * kInt8Shapes; ++shape) {
    const TensorType type = kInt8Types[static_cast<std::size_t>(shape) % std::size(kInt8Types)];
    const Int8Case c = random_matmul(random, type);
    CAPTURE(shape, name(type), c.n_out, c.n_in, c.rows.size());
    REQUIRE(first_difference(c.on(rig), c.on(reference)) == -1);
  }
}

TEST_CASE("int8: a matmul is as near to the exact product as its rounding allows") {
  SeededRandom random(test_seed() + 100);
  Rig reference(0);
  for (int shape = 0; shape < kInt8Shapes; ++shape) {
    const TensorType type = kInt8Types[static_cast<std::size_t>(shape) % std::size(kInt8Types)];
    const Int8Case c = random_matmul(random, type);
    const std::vector<float> out = c.on(reference);
    double worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto [exact, slack] =
          expected_dot(c, i / c.n_out, static_cast<std::uint32_t>(i % c.n_out));
      worst = std::max(worst, std::abs(out[i] - exact) / (slack + 1e-30));
    }
    CAPTURE(shape, name(type), c.n_out, c.n_in);
    REQUIRE(worst <= 1.0);
  }
}

TEST_CASE("int8: a row's product does not depend on its batch or its index") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 200);
  Rig rig(threads);
  const TensorType type = GENERATE(from_range(std::begin(kInt8Types), std::end(kInt8Types)));
  const GroupedMatrix weight(random, type, 37, 512);
  const auto x = random_floats(random, weight.rows.n_in);
  const std::vector<float> alone = product(rig, weight.view(), x);
  for (const std::uint32_t n_rows : {2, 3, 5, 8, 9, 17, 48}) {
    for (std::uint32_t index = 0; index < n_rows; index += 5) {
      auto batch = random_floats(random, std::size_t{n_rows} * weight.rows.n_in);
      std::ranges::copy(x, batch.begin() + index * weight.rows.n_in);
      const std::vector<float> out = product(rig, weight.view(), batch);
      const auto first = out.begin() + index * weight.rows.n_out;
      CAPTURE(threads, name(type), n_rows, index);
      REQUIRE(first_difference({first, first + weight.rows.n_out}, alone) == -1);
    }
  }
}

TEST_CASE("int8: experts with a part of a row group are refused") {
  const std::uint32_t threads = GENERATE(0, 2);
  CAPTURE(threads);
  const ChildExit end = run_in_child([&] {
    SeededRandom random(test_seed() + 6600);
    Rig rig(threads);
    Int8Experts c = random_experts(random, TensorType::Q8_0);
    c.n_experts = 1;
    c.n_out = 24;
    c.weight = GroupedMatrix(random, TensorType::Q8_0, c.n_out, c.weight.rows.n_in);
    c.chosen.assign(c.chosen.size(), 0);
    (void)c.on(rig);
    return 0;
  });
  CHECK(end.killed_by == SIGABRT);
  CHECK_THAT(end.error_output, Catch::Contains("whole row groups"));
}

TEST_CASE("int8: an expert's products are those of a matmul with its matrix, plus its bias") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 400);
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < 20; ++shape) {
    const TensorType type = kInt8Types[static_cast<std::size_t>(shape) % std::size(kInt8Types)];
    const Int8Experts c = random_experts(random, type);
    CAPTURE(threads, name(type), shape, c.n_experts, c.n_used, c.by_row, c.n_out);
    const std::vector<float> out = c.on(rig);
    for (std::uint32_t item = 0; item < c.chosen.size(); ++item) {
      const auto first = out.begin() + item * c.n_out;
      const auto x = c.x_of(item);
      std::vector<float> alone =
          product(reference, matrix_of(c, c.chosen[item]), {x.begin(), x.end()});
      for (std::uint32_t o = 0; o < c.n_out; ++o) alone[o] += c.bias_of(c.chosen[item], o);
      REQUIRE(first_difference({first, first + c.n_out}, alone) == -1);
    }
  }
}

TEST_CASE("int8: without a choice each row goes through the matrices in turn") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 450);
  Rig rig(threads);
  for (const TensorType type : {TensorType::Q8_0, TensorType::Q4_K})
    for (int shape = 0; shape < 4; ++shape) {
      Int8Experts c = random_experts(random, type);
      c.use_all(random);
      CAPTURE(threads, test_seed(), name(type), shape, c.n_experts, c.n_rows, c.by_row, c.n_out);
      check_matrices_in_turn(rig, c);
    }
}

TEST_CASE("int8: a row with a number that is not finite gives none that is, and changes no other") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const float bad =
      GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
               -std::numeric_limits<float>::infinity());
  SeededRandom random(test_seed() + 300);
  Rig rig(threads);
  const TensorType type = GENERATE(TensorType::Q4_0, TensorType::Q5_1, TensorType::Q4_K);
  const GroupedMatrix weight(random, type, 20, 256);
  auto x = random_floats(random, 3 * std::size_t{weight.rows.n_in});
  const std::vector<float> before = product(rig, weight.view(), x);
  x[weight.rows.n_in + 40] = bad;
  const std::vector<float> after = product(rig, weight.view(), x);
  for (std::size_t i = 0; i < after.size(); ++i) {
    CAPTURE(threads, i);
    if (i / weight.rows.n_out == 1) {
      REQUIRE(std::isnan(after[i]));
    } else {
      REQUIRE(after[i] == before[i]);
    }
  }
}

TEST_CASE("int8: a sum above 2^24 rounds to the nearest float, halves to even") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  Rig rig(threads);
  // Elements of 63 · 15 and of 50 · 15, then of 1 · 8 and 1 · 1.
  const SuperBlock block({63, 63, 63, 63, 63, 50, 1, 1});
  std::vector<float> x(256, 0.0F);
  std::fill_n(x.begin(), 139, 127.0F);
  x[160] = 126;
  x[192] = 79;
  CAPTURE(threads);
  REQUIRE(139 * 63 * 15 * 127 + 50 * 15 * 126 + 8 * 79 == (1 << 24) + 1);
  CHECK(product(rig, block.view(), x)[0] == 0x1p24F);
  x[224] = 2;
  CHECK(product(rig, block.view(), x)[0] == 0x1p24F + 4);
}

TEST_CASE("int8: an embedding is the token's row of the table, exactly") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 500);
  Rig rig(threads);
  for (const TensorType type : kInt8Types) {
    const GroupedMatrix table(random, type, 35, 256);
    CAPTURE(name(type));
    const std::vector<std::int32_t> tokens{0, 34, 16, 15};
    std::vector<float> out(tokens.size() * table.rows.n_in);
    run_step(rig, plain_rows(4), [&](Backend& backend, const LaunchContext& context) {
      return backend.embedding(context, {table.view(), tokens.data(), out.data()});
    });
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto token = static_cast<std::uint32_t>(tokens[i / table.rows.n_in]);
      const auto column = static_cast<std::uint32_t>(i % table.rows.n_in);
      REQUIRE(out[i] == static_cast<float>(table.rows.at(token, column)));
    }
  }
}

}  // namespace leasehold::testing
