/// Matmul for many rows: weights of blocks of 32, of 4 and 5 bits.
#include "kernels/cuda/device/matmul_many.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_MANY(Q4_0, q4_0, 2)
LEASEHOLD_MATMUL_MANY(Q4_1, q4_1, 2)
LEASEHOLD_MATMUL_MANY(Q5_0, q5_0, 2)
LEASEHOLD_MATMUL_MANY(Q5_1, q5_1, 2)

}  // namespace leasehold::device
