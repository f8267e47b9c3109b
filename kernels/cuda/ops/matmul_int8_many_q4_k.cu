/// Matmul of row groups for many rows in int8 arithmetic: weights of Q4_K, Q5_K and Q6_K.
#include "kernels/cuda/device/int8/matmul_int8.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_INT8_MANY(Q4_K, q4_k)
LEASEHOLD_MATMUL_INT8_MANY(Q5_K, q5_k)
LEASEHOLD_MATMUL_INT8_MANY(Q6_K, q6_k)

}  // namespace leasehold::device
