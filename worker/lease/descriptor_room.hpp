/// Computes the number of extents for which a worker has descriptors. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leasehold {

/// Each extent keeps one descriptor until its lease ends. The rest is for connections, the model,
/// and the descriptors of grants that are being mapped.
constexpr std::uint32_t extents_for(std::uint64_t descriptor_limit) {
  constexpr std::uint64_t kOthers = 640;
  constexpr std::uint64_t kMost = 1u << 31;
  const std::uint64_t room = descriptor_limit - std::min(kOthers, descriptor_limit / 2);
  return static_cast<std::uint32_t>(std::min(room, kMost));
}

}  // namespace leasehold
