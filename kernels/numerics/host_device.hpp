/// LEASEHOLD_HD marks a function that host code and kernels share: C++20, and the same operations
/// in the same order.
#pragma once

#if defined(__CUDACC__)
#define LEASEHOLD_HD __host__ __device__
#else
#define LEASEHOLD_HD
#endif
