/// A function that kernels on a card call as well as the host: LEASEHOLD_HD in front of it, C++20
/// inside, the same operations in the same order.
#pragma once

#if defined(__CUDACC__)
#define LEASEHOLD_HD __host__ __device__
#else
#define LEASEHOLD_HD
#endif
