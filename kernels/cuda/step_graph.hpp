/// A decode step as one graph of the driver that can stop between segments.
///
///   gate 0 → launches of segment 0 → gate 1 → if (1) { launches of segment 1 } → gate 2 → if (2) …
///
/// A segment is a few layers. The gate before it is a kernel of one thread: it reads the mirror,
/// reports to the host which epoch of the mirror the segment will see, and sets the condition of
/// the node that holds the segment. When the engine's lease is revoked, a replay stops at the next
/// segment; every kernel masks the rows of a revoked tenant by itself. If the driver or the toolkit
/// has no conditional nodes, segments are plain nodes and their kernels return at once.
///
/// Where card, driver and toolkit can (sm_90, CUDA 13), a kernel of a segment depends on the one
/// before it by a programmatic edge: its blocks are placed while the previous kernel ends, and wait
/// for that end. No programmatic edge enters or leaves a gate.
///
/// A graph contains the addresses of weights, so it is bound to the lease words that granted them.
///
/// Lifetime: the context outlives it. Threads: one at a time; `make` runs on a separate thread
/// while the engine thread only polls. Source: CUDA Driver API reference, conditional graph nodes
/// and CUgraphEdgeData.
#pragma once

#include <compare>
#include <functional>
#include <span>
#include <vector>

#include "ipc/segment/gate_set.hpp"
#include "kernels/cuda/device_objects.hpp"
#include "kernels/cuda/kernel_launch.hpp"
#include "kernels/cuda/kernel_library.hpp"

namespace leasehold::cuda {

/// The number of rows and the positions of the longest sequence, each rounded up to a power of two.
/// Steps of one shape share a graph, which reads the adapters from step memory.
struct GraphShape {
  std::uint32_t n_rows = 0;
  std::uint32_t longest = 0;
  bool has_adapters = false;  ///< Whatever adapters the sequences have.
  auto operator<=>(const GraphShape&) const = default;

  /// The smallest shape that holds a step of this size.
  static GraphShape bucket_for(std::uint32_t n_rows, std::uint32_t longest);
};

/// Launches that run or are skipped together.
using GraphSegment = std::vector<KernelLaunch>;

class StepGraph {
 public:
  struct Plan {
    std::span<const GraphSegment> segments;
    std::span<const LeaseDependency> bound_to;
    /// Plans the gate before a segment; `condition` belongs to the next node, or is 0. Empty: no
    /// gates at all, to measure their cost.
    std::function<KernelLaunch(std::uint32_t segment, std::uint64_t condition)> gate;
  };

  /// Errors: the driver's.
  static Result<StepGraph> make(const Context& context, KernelLibrary& library, const Plan& plan);

  /// Errors: StaleGraph if any lease (slot and word) differs from the leases under which the graph
  /// was made.
  Result<void> check_bound(std::span<const LeaseDependency> leases) const;

  CUgraphExec exec() const { return exec_.get(); }  ///< Used by the launcher.
  /// The number of programmatic edges.
  std::uint32_t n_programmatic() const { return n_programmatic_; }

 private:
  StepGraph() = default;
  static Result<StepGraph> build(const Context& context, KernelLibrary& library, const Plan& plan,
                                 bool programmatic);

  Owned<CUgraph, &Driver::cuGraphDestroy> graph_;
  Owned<CUgraphExec, &Driver::cuGraphExecDestroy> exec_;
  std::vector<LeaseDependency> bound_to_;
  std::uint32_t n_programmatic_ = 0;
};

}  // namespace leasehold::cuda
