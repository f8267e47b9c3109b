/// Requests weights from memory before a dot reaches them.
#pragma once

#include "kernels/numerics/int8_order.hpp"
#include "kernels/quant/group_format.hpp"

namespace leasehold {

/// Measured: blocks of 256 are as large as what a processor sees ahead by itself, and without
/// prefetching they arrive at a third of the memory's bandwidth.
inline constexpr std::size_t kPrefetchBytes = 12288;

/// Requests what a row in file order has that far ahead; called once per 32 elements.
inline void prefetch_ahead(const void* row) {
  __builtin_prefetch(static_cast<const std::byte*>(row) + kPrefetchBytes);
}

/// Requests a strip's share of a block that far ahead. Addresses past the matrix do no harm.
template <TensorType kType>
[[gnu::always_inline]] inline void prefetch_strip(const std::byte* block, std::uint32_t strip) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr std::uint32_t kLineBytes = 64;
  constexpr std::uint32_t kShareBytes = kFormat.size_bytes() / (kFormat.elements / kInt8Strip);
  const std::byte* from = block + kPrefetchBytes + strip * kShareBytes;
#pragma GCC unroll 8
  for (std::uint32_t at = 0; at < kShareBytes; at += kLineBytes) __builtin_prefetch(from + at);
}

}  // namespace leasehold
