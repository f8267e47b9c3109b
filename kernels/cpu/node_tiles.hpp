/// Which tiles of a launch the threads of each node of memory take first.
///
/// Each pass of a launch is cut into one part per node, in proportion to its threads. A node's
/// tiles are its parts of all passes. A thread takes the tiles of its own node, then those of other
/// nodes, so that no thread is idle while tiles are left. Each node's counter has its own cache
/// line.
///
/// Threads: `begin` from the caller while no thread takes tiles; the other functions from any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/machine/node_shares.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "kernels/cpu/tile_passes.hpp"

namespace leasehold {

class NodeTiles {
 public:
  /// Precondition: each node has a thread.
  explicit NodeTiles(NodeShares shares) : shares_(std::move(shares)), nodes_(shares_.nodes()) {}

  const NodeShares& shares() const { return shares_; }
  /// Starts a new launch with these tiles.
  void begin(const TilePasses& passes);
  /// Takes a tile of this node; nullopt if threads have taken all.
  std::optional<std::uint32_t> take(std::uint32_t node);

 private:
  /// A node's tiles of equal passes: [begin, end) of the first pass, and equally many of each later
  /// pass.
  struct Part {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t pass_tiles = 0;
    std::uint32_t times = 0;
  };
  struct alignas(kCacheLineBytes) Node {
    std::atomic<std::uint32_t> taken{0};
    // Written by `begin` only.
    alignas(kCacheLineBytes) std::array<Part, TilePasses::kMaxAdded> parts{};
    std::uint32_t n_parts = 0;
  };

  NodeShares shares_;
  std::vector<Node> nodes_;
};

}  // namespace leasehold
