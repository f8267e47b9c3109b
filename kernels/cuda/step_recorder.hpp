/// Records the launches of a step in segments of a few layers, and keeps the graphs made from such
/// steps by shape.
///
/// Pure except for the graphs it holds. Threads: the engine's.
#pragma once

#include <compare>
#include <map>
#include <optional>

#include "kernels/cuda/step_graph.hpp"

namespace leasehold::cuda {

/// Steps of one shape share a graph: rows and positions, each rounded up to a power of two.
struct GraphShape {
  std::uint32_t n_rows = 0;
  std::uint32_t longest = 0;
  auto operator<=>(const GraphShape&) const = default;

  /// The smallest shape that holds such a step.
  static GraphShape bucket_for(std::uint32_t n_rows, std::uint32_t longest);
};

class StepRecorder {
 public:
  /// Each segment has this many layers. Launches before the first layer or after the last one join
  /// the nearest segment.
  explicit StepRecorder(std::uint32_t segment_layers) : segment_layers_(segment_layers) {}

  void begin() { segments_.clear(); }
  void add(KernelLaunch launch, std::uint16_t layer);
  std::span<const GraphSegment> segments() const { return segments_; }

 private:
  std::uint32_t segment_layers_;
  std::vector<GraphSegment> segments_;
};

}  // namespace leasehold::cuda
