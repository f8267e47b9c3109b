/// A decode step as one graph of the driver, stoppable inside itself.
///
///   gate 0 → launches of segment 0 → gate 1 → if (1) { launches of segment 1 } → gate 2 → if (2) …
///
/// A segment is a few layers. The gate before it is a kernel of one thread: it reads the mirror,
/// tells the host which state of it the segment will see, and sets the condition of the node that
/// holds the segment. So when the engine's lease goes, a replay stops at the next segment; a
/// tenant's rows are masked by every kernel for itself. Where the driver or the toolkit has no
/// conditional nodes, segments stand in the graph plainly and their kernels run empty.
///
/// Graphs carry addresses of weights, so each is bound to the lease words they were granted under.
///
/// Lifetime: the context outlives it. Threads: the engine's. Source: CUDA Driver API reference,
/// conditional graph nodes.
#pragma once

#include <span>
#include <vector>

#include "ipc/segment/gate_set.hpp"
#include "kernels/cuda/device_objects.hpp"
#include "kernels/cuda/kernel_launch.hpp"
#include "kernels/cuda/kernel_library.hpp"

namespace leasehold::cuda {

/// Launches that are begun or left out together.
struct GraphSegment {
  std::vector<KernelLaunch> launches;
};

class StepGraph {
 public:
  struct Plan {
    std::span<const GraphSegment> segments;
    std::span<const LeaseDependency> bound_to;
    /// The gate before a segment; `condition` is the next node's, or 0.
    KernelLaunch (*gate)(const void* context, std::uint32_t segment, std::uint64_t condition);
    const void* gate_context;
    bool is_gated = true;  ///< False: no gates at all, to measure what they cost.
  };

  /// Errors: those of the driver.
  static Result<StepGraph> make(const Context& context, KernelLibrary& library, const Plan& plan);

  StepGraph(StepGraph&& other) noexcept;
  StepGraph& operator=(StepGraph&&) = delete;
  ~StepGraph();

  /// StaleGraph when any of these is not the lease, slot and word, that it was made under.
  Result<void> check_bound(std::span<const LeaseDependency> leases) const;

  CUgraphExec exec() const { return exec_; }  ///< For the launcher.

 private:
  explicit StepGraph(const Context& context) : context_(&context) {}

  const Context* context_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  std::vector<LeaseDependency> bound_to_;
};

}  // namespace leasehold::cuda
