/// The NUMA nodes over which the CPU backend's threads and the weights are spread.
///
/// With one node, as on most machines, nothing is bound or placed, and no system call is made. A
/// refused system call is logged once and affects only the speed.
///
/// Keys and values, scratch and activations are not placed. Keys and values lie on the node of the
/// thread that maps them, or of the broker if it has cleared the memory ahead; scratch lies on the
/// node that first writes it.
#pragma once

#include <pthread.h>

#include <functional>
#include <memory>
#include <vector>

#include "common/machine/numa_nodes.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "worker/model/weights_placement.hpp"
#include "worker/options.hpp"

namespace leasehold {

/// The system calls for nodes. Tests replace them.
struct NodeCalls {
  std::function<NumaNodes(const CpuSet& usable)> read = [](const CpuSet& usable) {
    return read_numa_nodes(usable);
  };
  std::function<Result<void>(pthread_t thread, const CpuSet& cpus)> bind =
      [](pthread_t thread, const CpuSet& cpus) { return cpus.pin_thread(thread); };
  PreferNode prefer = prefer_node;
};

/// A copyable value. The returned functions may outlive the object. Threads: any.
class ComputeNodes {
 public:
  /// Represents a single node.
  ComputeNodes() = default;
  /// The nodes found by `read_numa_nodes`, for a pool of `threads` threads.
  ComputeNodes(const NumaNodes& found, std::uint32_t threads, NodeCalls calls = {});

  /// Number of nodes; 1 if nothing is bound or placed.
  std::size_t count() const;
  /// The nodes for the thread pool.
  PoolNodes pool() const;
  /// The cores of thread 0, which the caller must bind itself; empty with one node.
  CpuSet engine_cpus() const;
  /// The function that places weights; empty with one node.
  PlaceWeights weights_placer() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // null with one node
};

/// The nodes that the CPU backend may use under `options`. The reference backend has one thread, so
/// it uses one node.
ComputeNodes nodes_for(const WorkerOptions& options, NodeCalls calls = {});

}  // namespace leasehold
