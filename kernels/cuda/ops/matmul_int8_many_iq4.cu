/// Matmul of row groups for many rows in int8 arithmetic: weights of IQ4_NL and MXFP4.
#include "kernels/cuda/device/int8/matmul_int8.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_INT8_MANY(IQ4_NL, iq4_nl)
LEASEHOLD_MATMUL_INT8_MANY(MXFP4, mxfp4)

}  // namespace leasehold::device
