/// Matmul for many rows: weights of Q2_K and Q3_K.
#include "kernels/cuda/device/matmul_many.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_MANY(Q2_K, q2_k, 2)
LEASEHOLD_MATMUL_MANY(Q3_K, q3_k, 2)

}  // namespace leasehold::device
