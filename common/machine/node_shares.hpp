/// Cuts a range into one part per node of memory, in proportion to the threads of each node.
///
/// The tiles of a launch and the bytes of a matrix are cut by the same rule, so a node takes the
/// tiles whose bytes lie there. A plain value. Nodes are counted from 0; a node's number in the
/// system is in NodeThreads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/expects.hpp"

namespace leasehold {

class NodeShares {
 public:
  /// `threads[k]` threads compute on node k. Precondition: there is a thread.
  explicit NodeShares(std::span<const std::uint32_t> threads) {
    for (const std::uint32_t each : threads) before_.push_back(before_.back() + each);
    expects(before_.back() > 0, "at least one thread has a share");
  }

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(before_.size() - 1); }
  std::uint32_t threads() const { return before_.back(); }
  std::uint32_t threads_of(std::uint32_t node) const { return before_[node + 1] - before_[node]; }
  /// The threads of a node are consecutive; thread 0 is on the first node that has threads.
  std::uint32_t node_of(std::uint32_t thread) const {
    const auto next = std::upper_bound(before_.begin(), before_.end(), thread);
    return static_cast<std::uint32_t>(next - before_.begin() - 1);
  }
  /// Part k of [0, n) is [begin_of(k, n), begin_of(k + 1, n)).
  std::uint64_t begin_of(std::uint32_t node, std::uint64_t n) const {
    return n * before_[node] / before_.back();
  }

 private:
  std::vector<std::uint32_t> before_{0};  // threads of earlier nodes; the last entry is their sum
};

}  // namespace leasehold
