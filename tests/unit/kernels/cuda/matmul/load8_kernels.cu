/// load8 of every type, as a kernel: four threads per group of 32.
#include "kernels/cuda/device/dequantize.cuh"
#include "tests/unit/kernels/cuda/matmul/load8_params.hpp"

namespace leasehold::device {

template <TensorType kType>
__device__ __forceinline__ void load_row(const Load8Params& p) {
  std::uint32_t halves[4];
  const std::uint32_t group = blockIdx.x;
  load8<kType>(halves, p.row, group, threadIdx.x, p.n_in);
  for (std::uint32_t w = 0; w < 4; ++w) p.halves[(group * 4 + threadIdx.x) * 4 + w] = halves[w];
}

LEASEHOLD_KERNEL(lh_test_load8_F16, Load8Params, 4) {
  load_row<TensorType::F16>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_BF16, Load8Params, 4) {
  load_row<TensorType::BF16>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q8_0, Load8Params, 4) {
  load_row<TensorType::Q8_0>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q4_0, Load8Params, 4) {
  load_row<TensorType::Q4_0>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q4_1, Load8Params, 4) {
  load_row<TensorType::Q4_1>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q5_0, Load8Params, 4) {
  load_row<TensorType::Q5_0>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q5_1, Load8Params, 4) {
  load_row<TensorType::Q5_1>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q2_K, Load8Params, 4) {
  load_row<TensorType::Q2_K>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q3_K, Load8Params, 4) {
  load_row<TensorType::Q3_K>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q4_K, Load8Params, 4) {
  load_row<TensorType::Q4_K>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_IQ4_NL, Load8Params, 4) {
  load_row<TensorType::IQ4_NL>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_IQ4_XS, Load8Params, 4) {
  load_row<TensorType::IQ4_XS>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_MXFP4, Load8Params, 4) {
  load_row<TensorType::MXFP4>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q5_K, Load8Params, 4) {
  load_row<TensorType::Q5_K>(p);
}
LEASEHOLD_KERNEL(lh_test_load8_Q6_K, Load8Params, 4) {
  load_row<TensorType::Q6_K>(p);
}

}  // namespace leasehold::device
