/// Matmul of row groups for many rows in int8 arithmetic: weights of Q2_K and Q3_K.
#include "kernels/cuda/device/int8/matmul_int8.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_INT8_MANY(Q2_K, q2_k)
LEASEHOLD_MATMUL_INT8_MANY(Q3_K, q3_k)

}  // namespace leasehold::device
