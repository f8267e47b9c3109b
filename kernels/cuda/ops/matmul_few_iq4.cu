/// Matmul for few rows: weights of IQ4_NL, IQ4_XS and MXFP4.
#include "kernels/cuda/device/matmul_few.cuh"

namespace leasehold::device {

LEASEHOLD_MATMUL_FEW(IQ4_NL, iq4_nl)
LEASEHOLD_MATMUL_FEW(IQ4_XS, iq4_xs)
LEASEHOLD_MATMUL_FEW(MXFP4, mxfp4)

}  // namespace leasehold::device
