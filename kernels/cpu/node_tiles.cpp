#include "kernels/cpu/node_tiles.hpp"

namespace leasehold {

void NodeTiles::begin(const TilePasses& passes) {
  for (std::uint32_t k = 0; k < nodes_.size(); ++k) {
    Node& node = nodes_[k];
    node.n_parts = 0;
    std::uint32_t first = 0;
    for (const auto& [n, times] : passes.added()) {
      node.parts[node.n_parts++] = {
          .begin = first + static_cast<std::uint32_t>(shares_.begin_of(k, n)),
          .end = first + static_cast<std::uint32_t>(shares_.begin_of(k + 1, n)),
          .pass_tiles = n,
          .times = times};
      first += n * times;
    }
    // Relaxed: the launch publishes the counter with the job.
    node.taken.store(0, std::memory_order_relaxed);
  }
}

std::optional<std::uint32_t> NodeTiles::take(std::uint32_t node) {
  Node& from = nodes_[node];
  // Relaxed: a tile's index needs no other thread's writes.
  std::uint32_t index = from.taken.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t p = 0; p < from.n_parts; ++p) {
    const Part& part = from.parts[p];
    const std::uint32_t n = part.end - part.begin;
    if (index < n * part.times) return part.begin + index / n * part.pass_tiles + index % n;
    index -= n * part.times;
  }
  return std::nullopt;
}

}  // namespace leasehold
