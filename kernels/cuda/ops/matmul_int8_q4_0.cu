/// Matmul of row groups in int8 arithmetic: weights of Q4_0 and Q4_1.
#include "kernels/cuda/device/int8/matmul_int8_early.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_INT8(Q4_0, q4_0)
LEASEHOLD_MATMUL_INT8(Q4_1, q4_1)
LEASEHOLD_MATMUL_INT8_EARLY(Q4_0, q4_0)
LEASEHOLD_MATMUL_INT8_EARLY(Q4_1, q4_1)

}  // namespace leasehold::device
