#include "ipc/segment/extent_size.hpp"

#include "common/expects.hpp"

namespace leasehold {
namespace {

constexpr std::uint64_t kLargeBlockBytes = 32ull << 20;
constexpr std::uint64_t kBlocksPerExtentWanted = 8;

}  // namespace

std::uint64_t choose_extent_size(std::uint64_t capacity_bytes, std::uint64_t block_bytes,
                                 std::uint32_t max_extents) {
  expects(block_bytes > 0 && block_bytes <= capacity_bytes, "a block fits into the pool");
  std::uint64_t wanted =
      block_bytes > kLargeBlockBytes ? block_bytes : kBlocksPerExtentWanted * block_bytes;
  if (wanted > capacity_bytes) wanted = block_bytes;
  std::uint64_t size = kMinExtentBytes;
  while (size < wanted || capacity_bytes / size > max_extents) size *= 2;
  return size;
}

}  // namespace leasehold
