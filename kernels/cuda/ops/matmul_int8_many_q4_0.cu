/// Matmul of row groups for many rows in int8 arithmetic: weights of Q4_0 and Q4_1.
#include "kernels/cuda/device/int8/matmul_int8.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_INT8_MANY(Q4_0, q4_0)
LEASEHOLD_MATMUL_INT8_MANY(Q4_1, q4_1)

}  // namespace leasehold::device
