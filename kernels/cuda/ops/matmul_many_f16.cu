/// Matmul for many rows: weights of 16-bit floats, and of Q8_0.
#include "kernels/cuda/device/matmul_many.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_MANY(F16, f16, 2)
LEASEHOLD_MATMUL_MANY(BF16, bf16, 2)
LEASEHOLD_MATMUL_MANY(Q8_0, q8_0, 2)

}  // namespace leasehold::device
