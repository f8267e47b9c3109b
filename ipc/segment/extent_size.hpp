/// The size of the extents that a pool of memory is cut into. The broker chooses it, and a plan
/// computes what the broker would choose.
#pragma once

#include <cstdint>

#include "common/expects.hpp"

namespace leasehold {

inline constexpr std::uint32_t kDefaultMaxExtents = 1024;
inline constexpr std::uint32_t kMaxExtents = 16'384;
inline constexpr std::uint64_t kMinExtentBytes = 2ull << 20;

/// The extent size for KV blocks of `block_bytes`: the smallest 2 MiB·2^k that holds 8 blocks (1
/// block if it is larger than 32 MiB) and cuts the capacity into at most `max_extents`.
/// Precondition: block_bytes is 1 … capacity_bytes. The result may exceed a small capacity.
inline std::uint64_t choose_extent_size(std::uint64_t capacity_bytes, std::uint64_t block_bytes,
                                        std::uint32_t max_extents = kDefaultMaxExtents) {
  constexpr std::uint64_t kLargeBlockBytes = 32ull << 20;
  constexpr std::uint64_t kBlocksPerExtentWanted = 8;
  expects(block_bytes > 0 && block_bytes <= capacity_bytes, "a block fits into the pool");
  std::uint64_t wanted =
      block_bytes > kLargeBlockBytes ? block_bytes : kBlocksPerExtentWanted * block_bytes;
  if (wanted > capacity_bytes) wanted = block_bytes;
  std::uint64_t size = kMinExtentBytes;
  while (size < wanted || capacity_bytes / size > max_extents) size *= 2;
  return size;
}

}  // namespace leasehold
