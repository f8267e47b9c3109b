#include "kernels/cuda/plan/matmul_kernels.hpp"

#include "common/expects.hpp"

namespace leasehold::cuda {
namespace {

struct KernelNames {
  TensorType type;
  const char* few[4];   ///< Indexed by tiles: 1, 2, 4, 8.
  const char* many[2];  ///< Indexed by columns: 64, 128.
};

constexpr KernelNames kNames[] = {
    {TensorType::F16,
     {"lh_matmul_few_f16_1", "lh_matmul_few_f16_2", "lh_matmul_few_f16_4", "lh_matmul_few_f16_8"},
     {"lh_matmul_many_f16_64", "lh_matmul_many_f16_128"}},
    {TensorType::Q4_0,
     {"lh_matmul_few_q4_0_1", "lh_matmul_few_q4_0_2", "lh_matmul_few_q4_0_4",
      "lh_matmul_few_q4_0_8"},
     {"lh_matmul_many_q4_0_64", "lh_matmul_many_q4_0_128"}},
    {TensorType::Q4_1,
     {"lh_matmul_few_q4_1_1", "lh_matmul_few_q4_1_2", "lh_matmul_few_q4_1_4",
      "lh_matmul_few_q4_1_8"},
     {"lh_matmul_many_q4_1_64", "lh_matmul_many_q4_1_128"}},
    {TensorType::Q5_0,
     {"lh_matmul_few_q5_0_1", "lh_matmul_few_q5_0_2", "lh_matmul_few_q5_0_4",
      "lh_matmul_few_q5_0_8"},
     {"lh_matmul_many_q5_0_64", "lh_matmul_many_q5_0_128"}},
    {TensorType::Q5_1,
     {"lh_matmul_few_q5_1_1", "lh_matmul_few_q5_1_2", "lh_matmul_few_q5_1_4",
      "lh_matmul_few_q5_1_8"},
     {"lh_matmul_many_q5_1_64", "lh_matmul_many_q5_1_128"}},
    {TensorType::Q8_0,
     {"lh_matmul_few_q8_0_1", "lh_matmul_few_q8_0_2", "lh_matmul_few_q8_0_4",
      "lh_matmul_few_q8_0_8"},
     {"lh_matmul_many_q8_0_64", "lh_matmul_many_q8_0_128"}},
    {TensorType::Q2_K,
     {"lh_matmul_few_q2_k_1", "lh_matmul_few_q2_k_2", "lh_matmul_few_q2_k_4",
      "lh_matmul_few_q2_k_8"},
     {"lh_matmul_many_q2_k_64", "lh_matmul_many_q2_k_128"}},
    {TensorType::Q3_K,
     {"lh_matmul_few_q3_k_1", "lh_matmul_few_q3_k_2", "lh_matmul_few_q3_k_4",
      "lh_matmul_few_q3_k_8"},
     {"lh_matmul_many_q3_k_64", "lh_matmul_many_q3_k_128"}},
    {TensorType::Q4_K,
     {"lh_matmul_few_q4_k_1", "lh_matmul_few_q4_k_2", "lh_matmul_few_q4_k_4",
      "lh_matmul_few_q4_k_8"},
     {"lh_matmul_many_q4_k_64", "lh_matmul_many_q4_k_128"}},
    {TensorType::Q5_K,
     {"lh_matmul_few_q5_k_1", "lh_matmul_few_q5_k_2", "lh_matmul_few_q5_k_4",
      "lh_matmul_few_q5_k_8"},
     {"lh_matmul_many_q5_k_64", "lh_matmul_many_q5_k_128"}},
    {TensorType::Q6_K,
     {"lh_matmul_few_q6_k_1", "lh_matmul_few_q6_k_2", "lh_matmul_few_q6_k_4",
      "lh_matmul_few_q6_k_8"},
     {"lh_matmul_many_q6_k_64", "lh_matmul_many_q6_k_128"}},
    {TensorType::BF16,
     {"lh_matmul_few_bf16_1", "lh_matmul_few_bf16_2", "lh_matmul_few_bf16_4",
      "lh_matmul_few_bf16_8"},
     {"lh_matmul_many_bf16_64", "lh_matmul_many_bf16_128"}},
};

const KernelNames& names_of(TensorType type) {
  for (const KernelNames& names : kNames)
    if (names.type == type) return names;
  expects(false, "F32 weights use the lh_matmul_f32 kernels");
  return kNames[0];
}

}  // namespace

const char* few_rows_kernel(TensorType type, std::uint32_t tiles) {
  const std::uint32_t index = tiles == 1 ? 0 : tiles == 2 ? 1 : tiles == 4 ? 2 : 3;
  return names_of(type).few[index];
}

const char* many_rows_kernel(TensorType type, std::uint32_t columns) {
  return names_of(type).many[columns == 64 ? 0 : 1];
}

}  // namespace leasehold::cuda
