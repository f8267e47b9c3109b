/// Which matmuls start early, and what their blocks take of an SM.
#include <catch2/catch.hpp>

#include "kernels/cuda/plan/early_plan.hpp"
#include "kernels/cuda/plan/int8_plan.hpp"
#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr cuda::DeviceProperties kH200{
    .n_sms = 132, .max_shared_bytes = 227 * 1024, .has_wgmma = true, .starts_early = true};

cuda::MatmulOperands operands_of(TensorType type, std::uint32_t n_out, std::uint32_t n_in,
                                 std::uint32_t n_results) {
  return {.type = type,
          .layout = MatrixLayout::RowGroups,
          .n_out = n_out,
          .n_in = n_in,
          .n_results = n_results};
}

std::optional<cuda::EarlyShape> shape_of(const cuda::MatmulOperands& operands, bool has_norm,
                                         const cuda::DeviceProperties& card = kH200) {
  return cuda::early_shape({&operands, 1}, has_norm, card);
}

}  // namespace

TEST_CASE("cuda early plan: the blocks of two launches of a 7B model fit an SM, in every type") {
  constexpr std::uint32_t kSharedBytesOfSm = 227 * 1024;
  constexpr std::uint32_t kReservedBytes = 1024;  // by the driver, for each block
  constexpr std::uint32_t kStaticBytes = 2048;    // the list of columns and small words
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t n_rows : {1u, 2u, 8u})
      for (const std::uint32_t n_in : {4096u, 11008u}) {
        const bool has_norm = n_in == 4096;
        const auto shape = shape_of(operands_of(type, 4096, n_in, n_rows), has_norm);
        CAPTURE(name(type), n_rows, n_in);
        REQUIRE(shape);
        CHECK(shape->shared.stages >= 2);
        const std::uint32_t per_sm = (shape->n_blocks + kH200.n_sms - 1) / kH200.n_sms;
        CHECK(per_sm <= 2);
        CHECK(2 * per_sm * (shape->shared_bytes + kReservedBytes + kStaticBytes) <=
              kSharedBytesOfSm);
      }
}

TEST_CASE("cuda early plan: a launch has at most two blocks per SM, and one per group") {
  CHECK(shape_of(operands_of(TensorType::Q4_K, 11008, 4096, 1), true)->n_blocks == 264);
  CHECK(shape_of(operands_of(TensorType::Q4_K, 11008, 4096, 8), true)->n_blocks == 132);
  CHECK(shape_of(operands_of(TensorType::Q4_K, 33, 4096, 1), true)->n_blocks == 3);
}

TEST_CASE("cuda early plan: other cards, more rows, experts and wide norms keep their launches") {
  const auto starts = [](std::uint32_t n_in, std::uint32_t n_rows, bool has_norm,
                         const cuda::DeviceProperties& card = kH200) {
    return shape_of(operands_of(TensorType::Q8_0, 64, n_in, n_rows), has_norm, card).has_value();
  };
  CHECK(starts(4096, 8, true));
  CHECK_FALSE(starts(4096, 9, false));
  CHECK_FALSE(starts(16384, 8, true));
  CHECK(starts(16384, 8, false));
  cuda::DeviceProperties older = kH200;
  older.starts_early = false;
  CHECK_FALSE(starts(4096, 1, false, older));
  cuda::MatmulOperands experts = operands_of(TensorType::Q8_0, 64, 64, 2);
  experts.experts.n_in_turn = 2;
  CHECK_FALSE(shape_of(experts, false));
  cuda::MatmulOperands selected = operands_of(TensorType::Q8_0, 64, 64, 2);
  CHECK(cuda::norms_rows({&selected, 1}, kH200));
  const std::uint32_t rows[] = {1};
  selected.select = rows;
  CHECK_FALSE(cuda::norms_rows({&selected, 1}, kH200));
}

}  // namespace leasehold::testing
