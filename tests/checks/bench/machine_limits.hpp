/// The highest rates of a processor: reading memory, multiplying floats, multiplying bytes. The
/// speed of a matmul is reported as a share of these.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/cpu/row_kernels.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace leasehold::bench {

/// The instructions that multiply bytes.
enum class ByteProducts : std::uint8_t { None, Vpmaddubsw, Vpdpbusd, Tdpbssd };

std::string_view name(ByteProducts products);

/// The instruction with which a SIMD path multiplies bytes on this CPU.
ByteProducts byte_products(SimdPath path);

/// Rates of all threads together. 0 for instructions that the path lacks.
struct MachineLimits {
  double bytes_per_s = 0;      ///< Reading memory that no cache holds.
  double fma_per_s = 0;        ///< Multiply-adds of floats in registers.
  double byte_macs_per_s = 0;  ///< Multiply-adds of bytes in registers.

  /// The larger value of each rate.
  MachineLimits max(const MachineLimits& other) const;
};

/// Measures the rates within some milliseconds; only on x86-64, otherwise they are 0. `memory` is
/// larger than every cache. Times are those of thread_time.hpp.
MachineLimits measure_limits(ThreadPool& pool, SimdPath path, std::span<const std::byte> memory);

}  // namespace leasehold::bench
