/// Matmul for many rows: weights of Q4_K, Q5_K and Q6_K.
#include "kernels/cuda/device/matmul_many.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_MANY(Q4_K, q4_k)
LEASEHOLD_MATMUL_MANY(Q5_K, q5_k)
LEASEHOLD_MATMUL_MANY(Q6_K, q6_k)

}  // namespace leasehold::device
