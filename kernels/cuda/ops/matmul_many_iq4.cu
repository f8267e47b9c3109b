/// Matmul for many rows: weights of IQ4_NL, IQ4_XS and MXFP4.
#include "kernels/cuda/device/matmul_many.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_MANY(IQ4_NL, iq4_nl, 1)
LEASEHOLD_MATMUL_MANY(IQ4_XS, iq4_xs, 1)
LEASEHOLD_MATMUL_MANY(MXFP4, mxfp4, 1)

}  // namespace leasehold::device
