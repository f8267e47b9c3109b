/// Matmul for few rows: weights of Q4_K and Q5_K.
#include "kernels/cuda/device/matmul_few.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_FEW(Q4_K, q4_k)
LEASEHOLD_MATMUL_FEW(Q5_K, q5_k)

}  // namespace leasehold::device
