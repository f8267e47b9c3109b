/// LEASEHOLD_HD marks a function that host code and kernels share. Such a function is C++20 and
/// performs the same operations in the same order on both.
#pragma once

#if defined(__CUDACC__)
#define LEASEHOLD_HD __host__ __device__
#else
#define LEASEHOLD_HD
#endif
