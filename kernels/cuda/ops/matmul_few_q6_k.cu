/// Matmul for few rows: weights of Q6_K and Q8_0.
#include "kernels/cuda/device/matmul_few.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_FEW(Q6_K, q6_k)
LEASEHOLD_MATMUL_FEW(Q8_0, q8_0)

}  // namespace leasehold::device
