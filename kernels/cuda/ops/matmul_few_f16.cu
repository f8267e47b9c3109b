/// Matmul for few rows: weights of 16-bit floats.
#include "kernels/cuda/device/matmul_few.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_FEW(F16, f16)
LEASEHOLD_MATMUL_FEW(BF16, bf16)

}  // namespace leasehold::device
