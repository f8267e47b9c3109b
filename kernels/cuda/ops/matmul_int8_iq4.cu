/// Matmul of row groups in int8 arithmetic: weights of IQ4_NL, IQ4_XS and MXFP4.
#include "kernels/cuda/device/int8/matmul_int8_early.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_INT8(IQ4_NL, iq4_nl)
LEASEHOLD_MATMUL_INT8(IQ4_XS, iq4_xs)
LEASEHOLD_MATMUL_INT8(MXFP4, mxfp4)
LEASEHOLD_MATMUL_INT8_EARLY(IQ4_NL, iq4_nl)
LEASEHOLD_MATMUL_INT8_EARLY(IQ4_XS, iq4_xs)
LEASEHOLD_MATMUL_INT8_EARLY(MXFP4, mxfp4)

}  // namespace leasehold::device
