/// Matmul for many rows: weights of Q4_K, Q5_K and Q6_K.
#include "kernels/cuda/device/matmul_many.cuh"

namespace leasehold::device {

// Two blocks of Q4_K would spill 8 bytes; Q5_K and Q6_K do not fit shared memory twice.
LEASEHOLD_MATMUL_MANY(Q4_K, q4_k, 1)
LEASEHOLD_MATMUL_MANY(Q5_K, q5_k, 1)
LEASEHOLD_MATMUL_MANY(Q6_K, q6_k, 1)

}  // namespace leasehold::device
