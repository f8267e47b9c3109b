/// Matmul of row groups in int8 arithmetic: weights of Q5_0, Q5_1 and Q8_0.
#include "kernels/cuda/device/int8/matmul_int8_early.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_INT8(Q5_0, q5_0)
LEASEHOLD_MATMUL_INT8(Q5_1, q5_1)
LEASEHOLD_MATMUL_INT8(Q8_0, q8_0)
LEASEHOLD_MATMUL_INT8_EARLY(Q5_0, q5_0)
LEASEHOLD_MATMUL_INT8_EARLY(Q5_1, q5_1)
LEASEHOLD_MATMUL_INT8_EARLY(Q8_0, q8_0)

}  // namespace leasehold::device
