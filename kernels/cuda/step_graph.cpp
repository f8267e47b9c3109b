#include "kernels/cuda/step_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace leasehold::cuda {
namespace {

// Attention's grid grows with the positions; blocks beyond a row's end return at once.
constexpr std::uint32_t kMinPositions = 256;

/// Describes a launch in the type of any kind of node's parameters.
template <class NodeParams>
NodeParams node_of(const KernelLaunch& launch, CUfunction function, void** params) {
  NodeParams node{};
  node.func = function;
  node.gridDimX = launch.grid.x;
  node.gridDimY = launch.grid.y;
  node.gridDimZ = launch.grid.z;
  node.blockDimX = launch.block_threads;
  node.blockDimY = 1;
  node.blockDimZ = 1;
  node.sharedMemBytes = launch.shared_bytes;
  node.kernelParams = params;
  return node;
}

/// Adds nodes to a graph; each depends on the previous one.
class Chain {
 public:
  /// `programmatic`: the edges between the kernels of add_all() are programmatic.
  Chain(const Context& context, KernelLibrary& library, CUgraph graph, bool programmatic)
      : context_(&context), library_(&library), graph_(graph), programmatic_(programmatic) {}

  Result<void> add(const KernelLaunch& launch, bool starts_early = false) {
    // The driver copies the parameters before it returns.
    KernelLaunch copy = launch;
    void* params[] = {copy.params.data()};
    const CUfunction function = TRY(library_->find(launch.kernel, launch.shared_bytes));
    CUgraphNode added = nullptr;
    CUresult result = CUDA_SUCCESS;
    if (starts_early) {
      result = add_early(added, launch, function, params);
    } else {
      const auto node = node_of<CUDA_KERNEL_NODE_PARAMS>(launch, function, params);
      result = context_->driver().cuGraphAddKernelNode(&added, graph_, before(), n_before(), &node);
    }
    TRY(check(context_->driver(), result, fmt::format("adding {} to a graph", launch.kernel)));
    last_ = added;
    return {};
  }

  /// Returns the number of programmatic edges.
  Result<std::uint32_t> add_all(std::span<const KernelLaunch> launches) {
    std::uint32_t n_early = 0;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const bool starts_early = programmatic_ && i > 0;
      TRY(add(launches[i], starts_early));
      n_early += starts_early ? 1 : 0;
    }
    return n_early;
  }

  bool programmatic() const { return programmatic_; }

#if LEASEHOLD_CUDA_CONDITIONAL_NODES
  Result<CUgraphConditionalHandle> new_condition() const {
    CUgraphConditionalHandle handle = 0;
    TRY(check(context_->driver(),
              context_->driver().cuGraphConditionalHandleCreate(&handle, graph_, context_->handle(),
                                                                0, CU_GRAPH_COND_ASSIGN_DEFAULT),
              "creating a graph condition"));
    return handle;
  }

  /// Adds a node whose body runs only if `condition` is set. Returns the body.
  Result<CUgraph> add_if(CUgraphConditionalHandle condition) {
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    node.conditional.handle = condition;
    node.conditional.type = CU_GRAPH_COND_TYPE_IF;
    node.conditional.size = 1;
    node.conditional.ctx = context_->handle();
    CUgraphNode added = nullptr;
    TRY(check(context_->driver(), add_node(added, node), "adding a conditional node"));
    last_ = added;
    return node.conditional.phGraph_out[0];
  }
#endif

 private:
#if LEASEHOLD_CUDA_CONDITIONAL_NODES
  CUresult add_node(CUgraphNode& added, CUgraphNodeParams& node) const {
#if CUDA_VERSION >= 13000
    return context_->driver().cuGraphAddNode(&added, graph_, before(), nullptr, n_before(), &node);
#else
    return context_->driver().cuGraphAddNode(&added, graph_, before(), n_before(), &node);
#endif
  }
#endif
  CUresult add_early([[maybe_unused]] CUgraphNode& added,
                     [[maybe_unused]] const KernelLaunch& launch,
                     [[maybe_unused]] CUfunction function, [[maybe_unused]] void** params) const {
#if LEASEHOLD_CUDA_EDGE_DATA
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_KERNEL;
    node.kernel = node_of<CUDA_KERNEL_NODE_PARAMS_v3>(launch, function, params);
    CUgraphEdgeData edge{};
    edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    return context_->driver().cuGraphAddNode(&added, graph_, before(), &edge, n_before(), &node);
#else
    return CUDA_ERROR_NOT_SUPPORTED;
#endif
  }
  const CUgraphNode* before() const { return last_ == nullptr ? nullptr : &last_; }
  std::size_t n_before() const { return last_ == nullptr ? 0 : 1; }

  const Context* context_;
  KernelLibrary* library_;
  CUgraph graph_;
  bool programmatic_;
  CUgraphNode last_ = nullptr;
};

/// Whether a graph's kernels may have programmatic edges on this card.
bool can_have_programmatic_edges([[maybe_unused]] const Context& context,
                                 [[maybe_unused]] KernelLibrary& library) {
#if LEASEHOLD_CUDA_EDGE_DATA
  return context.driver().cuGraphAddNode != nullptr && library.waits_for_previous();
#else
  return false;
#endif
}

/// Returns the number of programmatic edges.
Result<std::uint32_t> add_segment(Chain& chain, [[maybe_unused]] const Context& context,
                                  [[maybe_unused]] KernelLibrary& library,
                                  const StepGraph::Plan& plan, std::uint32_t index) {
  const GraphSegment& segment = plan.segments[index];
  if (!plan.gate) return chain.add_all(segment);
#if LEASEHOLD_CUDA_CONDITIONAL_NODES
  if (library.has_conditional_gate()) {
    const CUgraphConditionalHandle condition = TRY(chain.new_condition());
    TRY(chain.add(plan.gate(index, condition)));
    Chain body(context, library, TRY(chain.add_if(condition)), chain.programmatic());
    return body.add_all(segment);
  }
#endif
  TRY(chain.add(plan.gate(index, 0)));
  return chain.add_all(segment);
}

}  // namespace

GraphShape GraphShape::bucket_for(std::uint32_t n_rows, std::uint32_t longest) {
  return {.n_rows = std::bit_ceil(n_rows),
          .longest = std::bit_ceil(std::max(longest, kMinPositions))};
}

/// A driver that rejects programmatic edges still runs the graph without them.
Result<StepGraph> StepGraph::make(const Context& context, KernelLibrary& library,
                                  const Plan& plan) {
  if (can_have_programmatic_edges(context, library)) {
    Result<StepGraph> early = build(context, library, plan, true);
    const bool is_rejected = !early && early.error().code != Errc::DeviceFault &&
                             early.error().code != Errc::OutOfMemory;
    if (!is_rejected) return early;
  }
  return build(context, library, plan, false);
}

Result<StepGraph> StepGraph::build(const Context& context, KernelLibrary& library, const Plan& plan,
                                   bool programmatic) {
  const Driver& driver = context.driver();
  StepGraph graph;
  graph.bound_to_.assign(plan.bound_to.begin(), plan.bound_to.end());
  CUgraph created = nullptr;
  TRY(check(driver, driver.cuGraphCreate(&created, 0), "creating a graph"));
  graph.graph_ = {context, created};
  Chain chain(context, library, created, programmatic);
  for (std::uint32_t i = 0; i < plan.segments.size(); ++i)
    graph.n_programmatic_ += TRY(add_segment(chain, context, library, plan, i));
  CUgraphExec exec = nullptr;
  TRY(check(driver, driver.cuGraphInstantiateWithFlags(&exec, created, 0),
            "instantiating a graph"));
  graph.exec_ = {context, exec};
  return graph;
}

Result<void> StepGraph::check_bound(std::span<const LeaseDependency> leases) const {
  const auto is_same = [](const LeaseDependency& a, const LeaseDependency& b) {
    return a.slot == b.slot && a.granted == b.granted;
  };
  bool same = leases.size() == bound_to_.size();
  for (std::size_t i = 0; same && i < leases.size(); ++i) same = is_same(leases[i], bound_to_[i]);
  if (same) return {};
  return fail(Errc::StaleGraph,
              "a recorded step uses weights of leases that ended; record it again");
}

}  // namespace leasehold::cuda
