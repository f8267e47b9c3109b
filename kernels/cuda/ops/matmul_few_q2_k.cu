/// Matmul for few rows: weights of Q2_K and Q3_K.
#include "kernels/cuda/device/matmul_few.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_FEW(Q2_K, q2_k)
LEASEHOLD_MATMUL_FEW(Q3_K, q3_k)

}  // namespace leasehold::device
