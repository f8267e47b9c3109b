/// Matmul of row groups in int8 arithmetic: weights of Q4_K, Q5_K and Q6_K.
#include "kernels/cuda/device/int8/matmul_int8_early.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_INT8(Q4_K, q4_k)
LEASEHOLD_MATMUL_INT8(Q5_K, q5_k)
LEASEHOLD_MATMUL_INT8(Q6_K, q6_k)
LEASEHOLD_MATMUL_INT8_EARLY(Q4_K, q4_k)
LEASEHOLD_MATMUL_INT8_EARLY(Q5_K, q5_k)
LEASEHOLD_MATMUL_INT8_EARLY(Q6_K, q6_k)

}  // namespace leasehold::device
