#include "worker/model/weights_placement.hpp"

namespace leasehold {
namespace {

/// Collects ranges: each ends where the next begins, the last at the region's end.
class Ranges {
 public:
  Ranges(std::uint64_t size_bytes, std::uint64_t page_bytes)
      : size_bytes_(size_bytes), page_bytes_(page_bytes) {}

  /// Assigns the bytes from `at_bytes` on to this node. Calls must be in ascending order.
  void begin(std::uint64_t at_bytes, std::uint32_t node) {
    // The first page whose middle is not before `at_bytes`.
    const std::uint64_t at = (at_bytes + (page_bytes_ - 1) / 2) / page_bytes_ * page_bytes_;
    if (at >= size_bytes_) return;
    if (!ranges_.empty() && ranges_.back().begin_bytes == at) ranges_.pop_back();  // it is empty
    if (!ranges_.empty() && ranges_.back().node == node) return;
    ranges_.push_back({.begin_bytes = at, .node = node});
  }
  std::vector<NodeRange> take() {
    for (std::size_t i = 0; i < ranges_.size(); ++i)
      ranges_[i].end_bytes = i + 1 < ranges_.size() ? ranges_[i + 1].begin_bytes : size_bytes_;
    return std::move(ranges_);
  }

 private:
  std::uint64_t size_bytes_;
  std::uint64_t page_bytes_;
  std::vector<NodeRange> ranges_;
};

}  // namespace

std::vector<NodeRange> node_ranges(const WeightsLayout& layout, const NodeShares& shares,
                                   std::span<const std::uint32_t> ids, std::uint64_t page_bytes) {
  Ranges ranges(layout.size_bytes, page_bytes);
  for (const WeightTensor& weight : layout.weights)
    for (std::uint32_t node = 0; node < shares.nodes(); ++node)
      ranges.begin(weight.region_offset_bytes + shares.begin_of(node, weight.size_bytes),
                   ids[node]);
  return ranges.take();
}

}  // namespace leasehold
