/// Matmul of row groups in int8 arithmetic: weights of Q2_K and Q3_K.
#include "kernels/cuda/device/int8/matmul_int8_early.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_INT8(Q2_K, q2_k)
LEASEHOLD_MATMUL_INT8(Q3_K, q3_k)
LEASEHOLD_MATMUL_INT8_EARLY(Q2_K, q2_k)
LEASEHOLD_MATMUL_INT8_EARLY(Q3_K, q3_k)

}  // namespace leasehold::device
