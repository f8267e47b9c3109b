/// Matmul for few rows: weights of Q5_0 and Q5_1.
#include "kernels/cuda/device/matmul_few.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_FEW(Q5_0, q5_0)
LEASEHOLD_MATMUL_FEW(Q5_1, q5_1)

}  // namespace leasehold::device
