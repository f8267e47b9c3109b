/// The nodes of memory that the CPU backend's threads and the weights are spread over.
///
/// With one node, which almost every machine has, nothing is bound or placed, and no call is made.
/// What the system refuses is logged once and changes the speed only.
///
/// Keys and values, scratch and activations are not placed. Keys and values lie on the node of the
/// thread that maps them, or of the broker, which clears ahead; scratch where it is first written.
#pragma once

#include <pthread.h>

#include <functional>
#include <memory>
#include <vector>

#include "common/numa_nodes.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "worker/model/weights_placement.hpp"
#include "worker/options.hpp"

namespace leasehold {

/// The system calls for nodes. Tests pass their own.
struct NodeCalls {
  std::function<NumaNodes(const CpuSet& usable)> read = [](const CpuSet& usable) {
    return read_numa_nodes(usable);
  };
  std::function<Result<void>(pthread_t thread, const CpuSet& cpus)> bind =
      [](pthread_t thread, const CpuSet& cpus) { return cpus.pin_thread(thread); };
  PreferNode prefer = prefer_node;
};

/// A plain value; what it returns outlives it. Threads: any.
class ComputeNodes {
 public:
  /// One node.
  ComputeNodes() = default;
  /// Those of `read_numa_nodes`, for a pool of `threads`.
  ComputeNodes(const NumaNodes& found, std::uint32_t threads, NodeCalls calls = {});

  /// 1 where nothing is to be done.
  std::size_t count() const;
  /// For the thread pool.
  PoolNodes pool() const;
  /// The cores of thread 0, which its owner binds; empty with one node.
  CpuSet engine_cpus() const;
  /// Empty with one node.
  PlaceWeights weights_placer() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // null with one node
};

/// What `options` let the CPU backend use. The reference backend has one thread.
ComputeNodes nodes_for(const WorkerOptions& options, NodeCalls calls = {});

}  // namespace leasehold
