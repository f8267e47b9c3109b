#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cuda/plan/row_plan.hpp"
#include "tests/contract/backend/grouped_matrix.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {

TEST_CASE("cuda: embedding has the bits of dequantize_row for every type") {
  SeededRandom random(test_seed());
  for (const TensorType type : kEveryType) {
    CAPTURE(name(type), test_seed());
    const Matrix table(random, type, 9, 512);
    DeviceStep step(rows_of({4}, {4}), 1, 2);
    const std::vector<std::int32_t> tokens{8, 0, 3, 3};
    std::vector<float> expected(4 * 512);
    step.reference().embedding(step.context(), {table.view(), tokens.data(), expected.data()});
    auto out = poisoned(6 * 512);
    step.run(cuda::plan_embedding(step.plan(), {table.view(), tokens.data(), out.data()},
                                  table.memory.bytes()));
    REQUIRE(is_poison(out[4 * 512]));
    out.resize(4 * 512);
    REQUIRE(first_difference(out, expected) == -1);
  }
}

TEST_CASE("cuda: embedding has the bits of the row in the file for every type of row groups") {
  SeededRandom random(test_seed());
  for (const TensorType type : kEveryType) {
    if (!has_row_groups(type)) continue;
    CAPTURE(name(type), test_seed());
    const GroupedMatrix table(random, type, 35, 512);
    DeviceStep step(rows_of({4}, {4}), 1, 2);
    const std::vector<std::int32_t> tokens{34, 0, 16, 15};
    std::vector<float> expected(4 * 512);
    step.reference().embedding(step.context(), {table.rows.view(), tokens.data(), expected.data()});
    std::vector<float> out(6 * 512);
    step.run(cuda::plan_embedding(step.plan(), {table.view(), tokens.data(), out.data()},
                                  table.memory.bytes()));
    out.resize(4 * 512);
    REQUIRE(first_difference(out, expected) == -1);
  }
}

TEST_CASE("cuda: a token outside the vocabulary gives a row of NaN and reads nothing") {
  SeededRandom random(test_seed());
  const Matrix table(random, TensorType::Q8_0, 3, 64);
  DeviceStep step(rows_of({2}, {2}));
  const std::vector<std::int32_t> tokens{-1, 3};
  auto out = poisoned(2 * 64);
  step.run(cuda::plan_embedding(step.plan(), {table.view(), tokens.data(), out.data()},
                                table.memory.bytes()));
  for (const float value : out) REQUIRE((std::isnan(value) && !is_poison(value)));
}

}  // namespace leasehold::testing
