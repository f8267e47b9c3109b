/// Matmul for few rows: weights of Q4_0 and Q4_1.
#include "kernels/cuda/device/matmul_few.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_FEW(Q4_0, q4_0)
LEASEHOLD_MATMUL_FEW(Q4_1, q4_1)

}  // namespace leasehold::device
